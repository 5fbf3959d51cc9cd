"""Whether the ledger and the registry are each as they were signed, and say the same."""

import sqlite3
from contextlib import closing

import pytest

import make.service
from agentworld.audit.checks.store import verify_agent, verify_everything
from agentworld.errors import InputError, NotFound
from agentworld.lineage.base import Agent, VersionRef
from agentworld.lineage.memory import MemoryRegistry
from agentworld.records.run import RunClosing, RunOpening
from agentworld.records.statements.edge import Claim, SignedEdge
from make import records
from make.special import exchange
from make.story import STARTED, Story, story
from waiting import outcome


@pytest.fixture
def told(tmp_path) -> Story:
    return story(tmp_path)


def register(told: Story, run: str, **made: object) -> str:
    """Another version that claims this."""
    known = {"artifact": told.run.final_weights, "simulator": told.simulator}
    checkpoint = records.checkpoint("agent", **{**known, **made})
    what = Agent(checkpoint=checkpoint, run=run)
    return str(told.sources.registry.register_agent("claimed", what, told.store / "agent"))


def test_an_unchanged_store_has_no_problems(told):
    found = verify_everything(told.sources)
    assert (found.problems, found.num_unsigned) == ((), 0)
    assert [each.subject for each in found.versions] == ["hero@1", "world@1"]
    run = found.runs[told.run.id]
    assert run
    assert (run.grade, run.weights) == ("verified", "signed")


def test_an_empty_registry_without_signed_versions_is_no_problem(tmp_path):
    told = story(tmp_path, signed=False)
    found = verify_everything(told.sources._replace(registry=MemoryRegistry()))
    assert (list(found.runs), found.versions, found.problems) == ([told.run.id], (), ())


def test_a_changed_run_and_a_changed_version_are_both_reported(told):
    with sqlite3.connect(told.store / "ledger.db") as database:
        database.execute("UPDATE steps SET reward = 1.0")
    (told.store / "world/model.safetensors").write_text("other")
    problems = verify_everything(told.sources).problems
    assert any(each.startswith(f"run {told.run.id}: ") for each in problems)
    assert any(each.startswith("world@1: mirror differs in files") for each in problems)
    assert not any(each.startswith("hero@1") for each in problems)


def edge_of(told: Story) -> SignedEdge:
    """The service's signed edge of the story's agent."""
    known = {"artifact": told.run.final_weights, "simulator": told.simulator}
    claim = Claim.model_validate({"agent": "hero", "starting_weights": STARTED, **known})
    return make.service.log_signer(told.store, told.simulator).statement_signer.edge(
        told.run, claim
    )


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM attestations", "the edge agent-edges/{run}/"),
        (
            "INSERT INTO aliases (alias, simulator, set_by, at)"
            " SELECT 'a', simulator, 'eve', 'now' FROM runs",
            "the ledger says that alias 'a' meant ",
        ),
        (
            "INSERT INTO signing_keys (key, public, since) VALUES ('k', '', '')",
            "the ledger's key k",
        ),
        ("UPDATE steps SET episode = 9", "2 rows of steps refer to 9, which"),
        ("DELETE FROM runs", "run {run} is missing from the ledger"),
        ("UPDATE runs SET opening = ''", "the ledger's record of run {run} is garbled"),
        ("UPDATE runs SET opening = ''", "hero@1: the ledger's record of run {run} is"),
        ("UPDATE attestations SET envelope = CAST(x'ff' AS TEXT)", "the edge agent-edges/{run}/"),
    ],
)
def test_verifying_everything_reports_each_problem_of_the_ledger(told, statement, problem):
    edge_of(told)
    make.service.log_signer(told.store, told.simulator).statement_signer.copy_missing()
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        assert database.execute(statement).rowcount > 0
    problems = verify_everything(told.sources).problems
    assert any(each.startswith(problem.format(run=told.run.id)) for each in problems), problems


def test_problems_of_versions_are_reported_beside_a_garbled_run(told):
    (told.store / "world/model.safetensors").write_text("other")
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        database.execute("UPDATE runs SET opening = ''")
    found = verify_everything(told.sources)
    assert any(each.startswith("world@1: mirror differs in files") for each in found.problems)
    run = found.runs[told.run.id]
    assert run
    assert (run.grade, run.simulator, found.num_unsigned) == ("broken", None, 0)


def test_verifying_an_agent_reports_its_garbled_run_and_its_other_problems(told):
    (told.store / "world/model.safetensors").write_text("other")
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        database.execute("UPDATE runs SET opening = ''")
    found = verify_agent(told.agent, told.sources)
    run, *others = found.problems
    assert run.startswith(f"the ledger's record of run {told.run.id} is garbled")
    assert {each.partition(":")[0] for each in others} == {"hero@1", "world@1"}


def test_an_agent_with_a_signed_edge_missing_from_the_registry_is_reported(tmp_path):
    told = story(tmp_path, signed=False)
    edge = edge_of(told)
    empty = told.sources._replace(registry=MemoryRegistry())
    (problem,) = verify_everything(empty).problems
    assert problem.startswith(
        f"hero: mirror differs in edge of run {told.run.id} to {told.run.final_weights}: MLflow"
        " says nothing, the signed statement says 'sha256:"
    )
    agent = told.sources.registry.agent(told.agent).model_copy(update={"edge": edge})
    empty.registry.register_agent("hero", agent, told.store / "agent")
    (problem,) = verify_everything(empty).problems
    assert problem == "hero@1: its signature registration.dsse.json is missing"


def test_a_version_whose_run_is_not_in_the_ledger_is_reported(told):
    ref = register(told, "nobodys")
    assert verify_everything(told.sources).problems == (f"{ref}: the ledger has no run nobodys",)


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        ({"simulator": records.digest("other")}, "the run was served by"),
        ({"parents": [records.digest("other")]}, "the run began with"),
        ({}, "the run began with"),
    ],
)
def test_a_version_that_contradicts_its_run_is_reported(told, made, problem):
    parents = {} if "parents" in made or not made else {"parents": [records.digest("imitated")]}
    ref = register(told, told.run.id, **made, **parents)
    (found,) = verify_everything(told.sources).problems
    assert found.startswith(f"{ref}: {problem}")


def test_a_version_whose_run_ended_with_other_weights_is_reported(told):
    with sqlite3.connect(told.store / "ledger.db") as database:
        database.execute("UPDATE runs SET final_weights = ?", [records.digest("other")])
    problems = verify_everything(told.sources).problems
    ended = f"hero@1: the run ended with {records.digest('other')}, the version stands for"
    assert any(each.startswith(ended) for each in problems)


@pytest.mark.parametrize(
    ("tenant", "purpose", "told_as"),
    [
        ("local", "training", "run {run}"),
        ("rival", "training", None),
        ("local", "evaluation", None),
    ],
)
def test_another_training_run_of_the_tenant_with_the_same_weights_is_reported(
    told, tenant, purpose, told_as
):
    """Also where it was closed after the agent was registered."""
    made = told.run.final_weights
    opening = RunOpening(agent="hero", starting_weights=made, purpose=purpose)
    ledger = told.sources.ledger
    other = ledger.open_run(opening, records.digest("another"), tenant=tenant)
    ledger.close_run(other.id, RunClosing(final_weights=made))
    name = told_as and told_as.format(run=other.id)
    sentence = f"hero@1: {name} made the same weights in another simulator"
    wanted = (sentence,) if name else ()
    assert verify_everything(told.sources).problems == wanted
    assert verify_agent(told.agent, told.sources).problems == wanted


def test_verifying_an_agent_checks_only_its_run_version_and_world_model(told):
    other = told.sources.ledger.open_run(
        RunOpening(agent="other", starting_weights=records.digest("x")), told.simulator
    )
    register(told, "nobodys")
    found = verify_agent(told.agent, told.sources)
    assert list(found.runs) == [told.run.id]
    assert other.id not in found.runs
    assert [each.subject for each in found.versions] == ["hero@1", "world@1"]
    assert found.problems == ()


@pytest.mark.compute
def test_verifying_an_agent_checks_only_its_own_simulator(told):
    other = records.pinned(told.store, context_tokens=512)
    for folder in (told.store / "simulators").glob("*/model/model.safetensors"):
        folder.chmod(0o644)
        folder.write_text("other")
    (problem,) = verify_agent(told.agent, told.sources).problems
    assert problem.startswith(f"simulator {told.simulator}: ")
    assert any(other.digest in problem for problem in verify_everything(told.sources).problems)
    lost = VersionRef.parse(register(told, "nobodys"))
    assert not any("simulator" in problem for problem in verify_agent(lost, told.sources).problems)


def test_a_missing_run_is_the_first_problem_of_its_agent(told):
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        database.execute("DELETE FROM runs")
    first, *_ = verify_agent(told.agent, told.sources).problems
    assert first.startswith(
        f"run {told.run.id} is missing from the ledger, but the evidence mirror"
    )


def test_an_agent_whose_run_is_not_in_the_ledger_is_still_verified(told):
    ref = VersionRef.parse(register(told, "nobodys"))
    found = verify_agent(ref, told.sources)
    assert (found.runs, [each.subject for each in found.versions]) == ({}, ["claimed@1"])
    assert found.problems == ("claimed@1: the ledger has no run nobodys",)


def test_verify_agent_refuses_a_world_model(told):
    with pytest.raises(InputError, match="world@1 is not an agent"):
        verify_agent(told.world_model, told.sources)


def test_an_unknown_agent_is_not_found(told):
    with pytest.raises(NotFound):
        verify_agent(VersionRef(name="hero", version=9), told.sources)


def test_unsigned_records_are_counted_and_are_no_problem(tmp_path):
    told = story(tmp_path, signed=False)
    found = verify_everything(told.sources._replace(evidence=None))
    assert (found.problems, found.num_unsigned) == ((), 3)


def test_progress_is_reported_up_to_the_end(told):
    seen: list[float] = []
    verify_everything(told.sources, lambda done, total: seen.append(done / total))
    assert seen == sorted(seen)
    assert seen[-1] == 1


def test_a_disputed_claim_without_a_version_is_not_reported_as_missing(told):
    statement_signer = make.service.log_signer(told.store, told.simulator).statement_signer
    claim = Claim(
        agent="nobody",
        artifact=records.digest("made up"),
        starting_weights=STARTED,
        simulator=told.simulator,
    )
    assert statement_signer.edge(told.run, claim).edge.grade == "disputed"
    assert verify_everything(told.sources).problems == ()


@pytest.mark.parametrize("record", ['{"stages":[],"report":"REPORT"}', '{"run":"../"}', "[]"])
def test_an_unreadable_record_is_reported_and_runs_are_still_verified(told, monkeypatch, record):
    stored = told.sources.registry.stored
    garbled = record.replace("REPORT", records.digest("report"))
    monkeypatch.setattr(
        told.sources.registry,
        "stored",
        lambda ref: stored(ref).model_copy(update={"record": garbled}),
    )
    found = verify_everything(told.sources)
    assert found.runs
    assert [each for each in found.problems if each.startswith("hero@1: its record cannot be read")]


def test_a_changed_pinned_simulator_is_reported(told):
    (weights,) = (told.store / "simulators").glob("*/model/model.safetensors")
    weights.chmod(0o644)
    weights.write_text("other")
    (problem,) = verify_everything(told.sources).problems
    assert problem.startswith(f"simulator {told.simulator}: ")


EXCHANGED = {
    "mirror/*/0*.dsse.json": "has no copy in the evidence mirror",
    "simulators/*/manifest.json": "is not a pinned simulator",
    "simulators/*/model/model.safetensors": "is neither a regular file nor a folder",
}


@pytest.mark.parametrize(("pattern", "words"), EXCHANGED.items())
def test_a_pipe_in_place_of_evidence_is_reported_beside_other_problems(told, pattern, words):
    exchange(next(told.store.glob(pattern)))
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        database.execute("UPDATE steps SET reward = 1.0")
    found = outcome(lambda: verify_everything(told.sources).problems)
    assert isinstance(found, tuple)
    assert [problem for problem in found if words in problem]
    assert [each for each in found if each.startswith(f"run {told.run.id}: ") and words not in each]
