"""Whether the ledger and the registry are each as they were signed, and say the same."""

import sqlite3

import pytest

import make
from agentworld.audit.everything import verify_agent, verify_everything
from agentworld.errors import NotFound
from agentworld.lineage.base import Agent, VersionRef
from agentworld.lineage.memory import MemoryRegistry
from agentworld.records.run import RunOpening
from make_story import Story, story


@pytest.fixture
def told(tmp_path) -> Story:
    return story(tmp_path)


def register(told: Story, run: str, **made: object) -> str:
    """Another version that claims this."""
    known = {"artifact": told.run.final_weights, "simulator": told.simulator}
    checkpoint = make.checkpoint("agent", **{**known, **made})
    what = Agent(checkpoint=checkpoint, run=run)
    return str(told.sources.registry.register_agent("claimed", what, told.store / "agent"))


def test_untouched_everything_is_intact(told):
    found = verify_everything(told.sources)
    assert (found.problems, found.num_unsigned) == ((), 0)
    assert [each.version for each in found.versions] == ["hero@1", "world@1"]
    run = found.runs[told.run.id]
    assert run
    assert (run.state, run.weights) == ("verified", "signed")


def test_a_registry_without_versions_is_no_problem_of_the_ledgers(told):
    found = verify_everything(told.sources._replace(registry=MemoryRegistry()))
    assert (list(found.runs), found.versions, found.problems) == ([told.run.id], (), ())


def test_a_changed_run_and_a_changed_version_are_both_named(told):
    with sqlite3.connect(told.store / "ledger.db") as database:
        database.execute("UPDATE steps SET reward = 1.0")
    (told.store / "world/model.safetensors").write_text("other")
    problems = verify_everything(told.sources).problems
    assert any(each.startswith(f"run {told.run.id}: ") for each in problems)
    assert any(each.startswith("world@1: its files are") for each in problems)
    assert not any(each.startswith("hero@1") for each in problems)


def test_a_version_whose_run_the_ledger_does_not_have_is_named(told):
    ref = register(told, "nobodys")
    assert verify_everything(told.sources).problems == (f"{ref}: the ledger has no run nobodys",)


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        ({"simulator": make.digest("other")}, "the run was served by"),
        ({"parents": [make.digest("other")]}, "the run began with"),
        ({}, "the run began with"),
    ],
)
def test_a_version_that_contradicts_its_run_is_named(told, made, problem):
    parents = {} if "parents" in made or not made else {"parents": [make.digest("untrained")]}
    ref = register(told, told.run.id, **made, **parents)
    (found,) = verify_everything(told.sources).problems
    assert found.startswith(f"{ref}: {problem}")


def test_a_run_that_ended_with_other_weights_is_named(told):
    with sqlite3.connect(told.store / "ledger.db") as database:
        database.execute("UPDATE runs SET final_weights = ?", [make.digest("other")])
    problems = verify_everything(told.sources).problems
    ended = f"hero@1: the run ended with {make.digest('other')}, the version stands for"
    assert any(each.startswith(ended) for each in problems)


def test_of_one_agent_its_run_its_version_and_its_world_model_are_checked(told):
    other = told.sources.ledger.open_run(
        RunOpening(agent="other", starting_weights=make.digest("x")), told.simulator
    )
    register(told, "nobodys")
    found = verify_agent(told.agent, told.sources)
    assert list(found.runs) == [told.run.id]
    assert other.id not in found.runs
    assert [each.version for each in found.versions] == ["hero@1", "world@1"]
    assert found.problems == ()


def test_an_agent_without_a_run_is_checked_all_the_same(told):
    ref = VersionRef.parse(register(told, "nobodys"))
    found = verify_agent(ref, told.sources)
    assert (found.runs, [each.version for each in found.versions]) == ({}, ["claimed@1"])
    assert found.problems == ("claimed@1: the ledger has no run nobodys",)


def test_an_unknown_agent_is_not_found(told):
    with pytest.raises(NotFound):
        verify_agent(VersionRef(name="hero", version=9), told.sources)


def test_what_nobody_signed_is_counted_and_no_problem(tmp_path):
    told = story(tmp_path, signed=False)
    found = verify_everything(told.sources._replace(evidence=None))
    assert (found.problems, found.num_unsigned) == ((), 3)


def test_how_far_it_is_is_told_to_the_end(told):
    seen: list[float] = []
    verify_everything(told.sources, lambda done, total: seen.append(done / total))
    assert seen == sorted(seen)
    assert seen[-1] == 1
