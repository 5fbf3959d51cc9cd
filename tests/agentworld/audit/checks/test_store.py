"""Verification of the ledger and the registry against what was signed and each other."""

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path

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
def history(tmp_path) -> Story:
    return story(tmp_path)


def register(history: Story, run: str, **fields: object) -> str:
    """Registers another version that claims this run; returns its reference."""
    defaults = {"artifact": history.run.final_weights, "simulator": history.simulator}
    checkpoint = records.checkpoint("agent", **{**defaults, **fields})
    agent = Agent(checkpoint=checkpoint, run=run)
    return str(history.sources.registry.register_agent("claimed", agent, history.store / "agent"))


def test_an_unchanged_store_has_no_problems(history):
    verification = verify_everything(history.sources)
    assert (verification.problems, verification.num_unsigned) == ((), 0)
    assert [finding.subject for finding in verification.versions] == ["hero@1", "world@1"]
    run = verification.runs[history.run.id]
    assert run
    assert (run.grade, run.weights) == ("verified", "signed")


def test_an_empty_registry_without_signed_versions_is_no_problem(tmp_path):
    history = story(tmp_path, signed=False)
    verification = verify_everything(history.sources._replace(registry=MemoryRegistry()))
    assert (list(verification.runs), verification.versions, verification.problems) == (
        [history.run.id],
        (),
        (),
    )


def test_a_changed_run_and_a_changed_version_are_both_reported(history):
    with sqlite3.connect(history.store / "ledger.db") as database:
        database.execute("UPDATE steps SET reward = 1.0")
    (history.store / "world/model.safetensors").write_text("other")
    problems = verify_everything(history.sources).problems
    assert any(problem.startswith(f"run {history.run.id}: ") for problem in problems)
    assert any(problem.startswith("world@1: mirror differs in files") for problem in problems)
    assert not any(problem.startswith("hero@1") for problem in problems)


def edge_of(history: Story) -> SignedEdge:
    """The service's signed edge of the story's agent."""
    fields = {"artifact": history.run.final_weights, "simulator": history.simulator}
    claim = Claim.model_validate({"agent": "hero", "starting_weights": STARTED, **fields})
    return make.service.log_signer(history.store, history.simulator).statement_signer.edge(
        history.run, claim
    )


@pytest.mark.parametrize(
    ("statement", "template"),
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
def test_verifying_everything_reports_each_problem_of_the_ledger(history, statement, template):
    edge_of(history)
    make.service.log_signer(history.store, history.simulator).statement_signer.copy_missing()
    with closing(sqlite3.connect(history.store / "ledger.db")) as database, database:
        assert database.execute(statement).rowcount > 0
    problems = verify_everything(history.sources).problems
    assert any(problem.startswith(template.format(run=history.run.id)) for problem in problems), (
        problems
    )


def test_problems_of_versions_are_reported_beside_a_garbled_run(history):
    (history.store / "world/model.safetensors").write_text("other")
    with closing(sqlite3.connect(history.store / "ledger.db")) as database, database:
        database.execute("UPDATE runs SET opening = ''")
    verification = verify_everything(history.sources)
    assert any(
        problem.startswith("world@1: mirror differs in files") for problem in verification.problems
    )
    run = verification.runs[history.run.id]
    assert run
    assert (run.grade, run.simulator, verification.num_unsigned) == ("broken", None, 0)


def test_verifying_an_agent_reports_its_garbled_run_and_its_other_problems(history):
    (history.store / "world/model.safetensors").write_text("other")
    with closing(sqlite3.connect(history.store / "ledger.db")) as database, database:
        database.execute("UPDATE runs SET opening = ''")
    verification = verify_agent(history.agent, history.sources)
    run_problem, *other_problems = verification.problems
    assert run_problem.startswith(f"the ledger's record of run {history.run.id} is garbled")
    assert {problem.partition(":")[0] for problem in other_problems} == {"hero@1", "world@1"}


def test_an_agent_with_a_signed_edge_missing_from_the_registry_is_reported(tmp_path):
    scene = story(tmp_path, signed=False)
    edge = edge_of(scene)
    empty_sources = scene.sources._replace(registry=MemoryRegistry())
    (problem,) = verify_everything(empty_sources).problems
    assert problem.startswith(
        f"hero: mirror differs in edge of run {scene.run.id} to {scene.run.final_weights}: MLflow"
        " says nothing, the signed statement says 'sha256:"
    )
    agent = scene.sources.registry.agent(scene.agent).model_copy(update={"edge": edge})
    empty_sources.registry.register_agent("hero", agent, scene.store / "agent")
    (problem,) = verify_everything(empty_sources).problems
    assert problem == "hero@1: its signature registration.dsse.json is missing"


def test_a_version_whose_run_is_not_in_the_ledger_is_reported(history):
    ref = register(history, "nobodys")
    assert verify_everything(history.sources).problems == (f"{ref}: the ledger has no run nobodys",)


def test_a_version_whose_run_is_a_path_out_of_the_store_stops_no_audit(history, monkeypatch):
    is_file = Path.is_file

    def refuse_outside(path):
        if ".." in path.parts:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return is_file(path)

    (history.store / "mirror" / "agent-edges").mkdir()
    ref = register(history, "../../agent")
    monkeypatch.setattr(Path, "is_file", refuse_outside)
    problem = f"{ref}: the ledger has no run ../../agent"
    assert verify_everything(history.sources).problems == (problem,)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"simulator": records.digest("other")}, "the run was served by"),
        ({"parents": [records.digest("other")]}, "the run began with"),
        ({}, "the run began with"),
    ],
)
def test_a_version_that_contradicts_its_run_is_reported(history, fields, words):
    parents = {} if "parents" in fields or not fields else {"parents": [records.digest("imitated")]}
    ref = register(history, history.run.id, **fields, **parents)
    (problem,) = verify_everything(history.sources).problems
    assert problem.startswith(f"{ref}: {words}")


def test_a_version_whose_run_ended_with_other_weights_is_reported(history):
    with sqlite3.connect(history.store / "ledger.db") as database:
        database.execute("UPDATE runs SET final_weights = ?", [records.digest("other")])
    problems = verify_everything(history.sources).problems
    expected = f"hero@1: the run ended with {records.digest('other')}, the version stands for"
    assert any(problem.startswith(expected) for problem in problems)


@pytest.mark.parametrize(
    ("tenant", "purpose", "template"),
    [
        ("local", "training", "run {run}"),
        ("rival", "training", None),
        ("local", "evaluation", None),
    ],
)
def test_another_training_run_of_the_tenant_with_the_same_weights_is_reported(
    history, tenant, purpose, template
):
    """The other run was closed after the agent was registered."""
    weights = history.run.final_weights
    opening = RunOpening(agent="hero", starting_weights=weights, purpose=purpose)
    ledger = history.sources.ledger
    other = ledger.open_run(opening, records.digest("another"), tenant=tenant)
    ledger.close_run(other.id, RunClosing(final_weights=weights))
    name = template and template.format(run=other.id)
    sentence = f"hero@1: {name} made the same weights in another simulator"
    expected = (sentence,) if name else ()
    assert verify_everything(history.sources).problems == expected
    assert verify_agent(history.agent, history.sources).problems == expected


def test_verifying_an_agent_checks_only_its_run_version_and_world_model(history):
    other = history.sources.ledger.open_run(
        RunOpening(agent="other", starting_weights=records.digest("x")), history.simulator
    )
    register(history, "nobodys")
    verification = verify_agent(history.agent, history.sources)
    assert list(verification.runs) == [history.run.id]
    assert other.id not in verification.runs
    assert [finding.subject for finding in verification.versions] == ["hero@1", "world@1"]
    assert verification.problems == ()


@pytest.mark.compute
def test_verifying_an_agent_checks_only_its_own_simulator(history):
    other = records.pinned(history.store, context_tokens=512)
    for folder in (history.store / "simulators").glob("*/model/model.safetensors"):
        folder.chmod(0o644)
        folder.write_text("other")
    (problem,) = verify_agent(history.agent, history.sources).problems
    assert problem.startswith(f"simulator {history.simulator}: ")
    assert any(other.digest in problem for problem in verify_everything(history.sources).problems)
    claimed_ref = VersionRef.parse(register(history, "nobodys"))
    assert not any(
        "simulator" in problem for problem in verify_agent(claimed_ref, history.sources).problems
    )


def test_a_missing_run_is_the_first_problem_of_its_agent(history):
    with closing(sqlite3.connect(history.store / "ledger.db")) as database, database:
        database.execute("DELETE FROM runs")
    problem, *_ = verify_agent(history.agent, history.sources).problems
    assert problem.startswith(
        f"run {history.run.id} is missing from the ledger, but the evidence mirror"
    )


def test_an_agent_whose_run_is_not_in_the_ledger_is_still_verified(history):
    ref = VersionRef.parse(register(history, "nobodys"))
    verification = verify_agent(ref, history.sources)
    assert (verification.runs, [finding.subject for finding in verification.versions]) == (
        {},
        ["claimed@1"],
    )
    assert verification.problems == ("claimed@1: the ledger has no run nobodys",)


def test_verify_agent_refuses_a_world_model(history):
    with pytest.raises(InputError, match="world@1 is not an agent"):
        verify_agent(history.world_model, history.sources)


def test_an_unknown_agent_is_not_found(history):
    with pytest.raises(NotFound):
        verify_agent(VersionRef(name="hero", version=9), history.sources)


def test_unsigned_records_are_counted_and_are_no_problem(tmp_path):
    history = story(tmp_path, signed=False)
    verification = verify_everything(history.sources._replace(evidence=None))
    assert (verification.problems, verification.num_unsigned) == ((), 3)


def test_progress_is_reported_up_to_the_end(history):
    fractions: list[float] = []
    verify_everything(history.sources, lambda done, total: fractions.append(done / total))
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1


def test_a_disputed_claim_without_a_version_is_not_reported_as_missing(history):
    statement_signer = make.service.log_signer(history.store, history.simulator).statement_signer
    claim = Claim(
        agent="nobody",
        artifact=records.digest("made up"),
        starting_weights=STARTED,
        simulator=history.simulator,
    )
    assert statement_signer.edge(history.run, claim).edge.grade == "disputed"
    assert verify_everything(history.sources).problems == ()


@pytest.mark.parametrize("record", ['{"stages":[],"report":"REPORT"}', '{"run":"../"}', "[]"])
def test_an_unreadable_record_is_reported_and_runs_are_still_verified(history, monkeypatch, record):
    original = history.sources.registry.stored
    garbled = record.replace("REPORT", records.digest("report"))
    monkeypatch.setattr(
        history.sources.registry,
        "stored",
        lambda ref: original(ref).model_copy(update={"record": garbled}),
    )
    verification = verify_everything(history.sources)
    assert verification.runs
    assert [
        problem
        for problem in verification.problems
        if problem.startswith("hero@1: its record cannot be read")
    ]


def test_a_changed_pinned_simulator_is_reported(history):
    (weights,) = (history.store / "simulators").glob("*/model/model.safetensors")
    weights.chmod(0o644)
    weights.write_text("other")
    (problem,) = verify_everything(history.sources).problems
    assert problem.startswith(f"simulator {history.simulator}: ")


PIPE_PROBLEMS = {
    "mirror/*/0*.dsse.json": "has no copy in the evidence mirror",
    "simulators/*/manifest.json": "is not a pinned simulator",
    "simulators/*/model/model.safetensors": "is neither a regular file nor a folder",
}


@pytest.mark.parametrize(("pattern", "words"), PIPE_PROBLEMS.items())
def test_a_pipe_in_place_of_evidence_is_reported_beside_other_problems(history, pattern, words):
    exchange(next(history.store.glob(pattern)))
    with closing(sqlite3.connect(history.store / "ledger.db")) as database, database:
        database.execute("UPDATE steps SET reward = 1.0")
    problems = outcome(lambda: verify_everything(history.sources).problems)
    assert isinstance(problems, tuple)
    assert [problem for problem in problems if words in problem]
    assert [
        problem
        for problem in problems
        if problem.startswith(f"run {history.run.id}: ") and words not in problem
    ]
