"""Verification as of a past time: the records of that time, in their present state."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

import make.agent
import make.service
from agentworld.audit.checks.store import verify_agent, verify_everything
from agentworld.errors import NotFound
from agentworld.operations.declarations import erase_episode
from agentworld.operations.simulators import set_alias
from agentworld.records.statements.restore import Restore
from make import records
from make.agent import RegisteredAgent
from make.story import moment
from make.template import copied

pytestmark = pytest.mark.compute


class History(NamedTuple):
    """The events: a first agent and its use, a time, and then a second agent."""

    scene: RegisteredAgent
    other: RegisteredAgent
    then: datetime

    def problems(self, at: datetime | None = None) -> tuple[str, ...]:
        """The problems, without those of unsigned weights and registrations."""
        problems = verify_everything(self.scene.sources.as_of(at)).problems
        return tuple(
            problem for problem in problems if not any(word in problem for word in _KNOWN_PROBLEMS)
        )

    def change(self, statement: str, *values: object) -> None:
        make.agent.lose(self.scene, statement, *values)


_KNOWN_PROBLEMS = ("its signature registration.dsse.json is missing", "mirror differs in files")
SET_WEIGHTS = "UPDATE runs SET final_weights = ? WHERE id = ?"
SET_UNSIGNED_ALIAS = (
    "INSERT INTO aliases (alias, simulator, set_by, at) VALUES ('stable', ?, 'eve', ?)"
)
BOTH_KINDS = pytest.mark.parametrize("alias", ["stable", "shell-agent@production"])


@pytest.fixture
def history(tmp_path) -> History:
    return copied(build_history, tmp_path)


def build_history(store) -> History:
    agent = make.agent.registered(store)
    agent.use()
    set_alias("stable", agent.simulator.digest, store, "ada")
    time_between = moment()
    other_agent = make.agent.registered(store, agent.registry, "other")
    other_agent.use()
    next_simulator = records.pinned(store, context_tokens=512)
    set_alias("stable", next_simulator.digest, store, "ada")
    return History(agent, other_agent, time_between)


def test_signed_records_from_after_the_audited_time_are_no_problem(history):
    assert (history.problems(history.then), history.problems()) == ((), ())


def test_an_agents_alias_is_not_resolved_as_a_simulator_at_any_time(history):
    for at in (None, history.then):
        sources = history.scene.sources.as_of(at) if at else history.scene.sources
        assert sources.resolve("stable") != "stable"
        assert sources.resolve("shell-agent@production") == "shell-agent@production"


def test_the_result_contains_the_audited_time(history):
    verification = verify_everything(history.scene.sources.as_of(history.then))
    assert verification.at == history.then.isoformat()
    assert verify_everything(history.scene.sources).at is None


def test_only_runs_and_versions_that_existed_at_the_time_are_verified(history):
    verification = verify_everything(history.scene.sources.as_of(history.then))
    assert list(verification.runs) == [history.scene.agent.run]
    assert [finding.subject for finding in verification.versions] == ["shell-agent@1"]
    current = verify_everything(history.scene.sources)
    assert set(current.runs) == {history.scene.agent.run, history.other.agent.run}
    unsigned_sources = history.scene.sources._replace(evidence=None).as_of(history.then)
    assert list(verify_everything(unsigned_sources).runs) == [history.scene.agent.run]


def earlier_time(history: History) -> str:
    return history.then.isoformat(timespec="milliseconds")


def current_time(_history: History) -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


DELETE_USE = (
    "DELETE FROM attestations WHERE kind = 'alias'"
    " AND at = (SELECT at FROM aliases WHERE kind = 'agent' AND run = ?)"
)


def test_run_problems_are_reported_only_at_times_when_the_run_existed(history):
    history.change(SET_WEIGHTS, records.digest("evil"), history.other.agent.run)
    assert history.problems()
    assert history.problems(history.then) == ()
    history.change(SET_WEIGHTS, records.digest("evil"), history.scene.agent.run)
    assert history.problems(history.then)


@pytest.mark.parametrize(("time_of", "is_reported"), [(earlier_time, True), (current_time, False)])
def test_an_unsigned_alias_change_is_reported_only_from_its_time_on(history, time_of, is_reported):
    history.change(SET_UNSIGNED_ALIAS, records.digest("evil"), time_of(history))
    assert any("which is not signed" in problem for problem in history.problems())
    assert bool(history.problems(history.then)) == is_reported


@BOTH_KINDS
def test_a_deleted_alias_statement_is_reported_only_from_its_time_on(history, alias):
    make.service.log_signer(history.scene.store).statement_signer.copy_missing()
    for statement in history.scene.ledger.attestations.find("alias", subject=alias)[::-1]:
        assert history.problems(history.then) == ()
        history.change("DELETE FROM attestations WHERE name = ?", statement.name)
        assert any("is gone from the ledger" in problem for problem in history.problems())
    assert any("is gone from the ledger" in problem for problem in history.problems(history.then))


@BOTH_KINDS
def test_an_alias_row_with_a_later_envelope_is_reported_at_times_in_between(history, alias):
    row, later_row = history.scene.ledger.attestations.find("alias", subject=alias)
    history.change(
        "UPDATE attestations SET envelope = ? WHERE name = ?", later_row.envelope, row.name
    )
    problem = "the statement of alias {!r} at {} differs in the evidence mirror"
    assert problem.format(alias, row.at) in history.problems(history.then)


@BOTH_KINDS
def test_an_alias_copy_with_a_later_envelope_is_reported_at_times_in_between(history, alias):
    row, later_row = history.scene.ledger.attestations.find("alias", subject=alias)
    (history.scene.store / "mirror" / row.name).write_bytes(later_row.envelope)
    (problem,) = history.problems(history.then)
    assert problem.endswith("differs in the evidence mirror")


def test_records_without_a_readable_time_are_verified_at_every_time(history):
    history.change("UPDATE log SET body = 'text' WHERE run = ?", history.other.agent.run)
    history.change(
        "UPDATE attestations SET envelope = x'00' WHERE run = ?", history.other.agent.run
    )
    (weights,) = history.scene.simulator.folder.glob("model/model.safetensors")
    weights.chmod(0o644)
    weights.write_text("other")
    text = " ".join(history.problems(history.then))
    assert f"run {history.other.agent.run}: entry 1 of the log is missing, garbled" in text
    assert f"simulator {history.scene.simulator.digest}: " in text


def test_later_declarations_explain_losses_and_erasures_at_an_earlier_time(history):
    name = history.scene.ledger.attestations.find("edge", run=history.scene.agent.run)[0].name
    history.change("DELETE FROM attestations WHERE name = ?", name)
    fields = {"reason": "a backup", "by": "ada", "at": current_time(history)}
    history.scene.statement_signer.declare(Restore(run="", lost=(name,), **fields))
    (episode, *_) = history.scene.ledger.episodes(history.scene.agent.run)
    erase_episode(episode.id, history.scene.store, "ada")
    problems = history.problems(history.then)
    assert not [problem for problem in problems if name in problem or episode.id in problem]


def test_an_earlier_audit_compares_only_registry_aliases_that_did_not_move_since(history):
    history.other.registry.remove_alias("shell-agent", "production")
    assert history.problems()
    assert history.problems(history.then) == ()
    history.scene.registry.set_alias(history.scene.ref, "trial")
    (problem,) = history.problems(history.then)
    assert "shell-agent: mirror differs in alias trial: MLflow says 1" in problem


def test_an_edge_signed_before_its_agents_registration_is_no_problem_in_between(history):
    registration_time = history.other.registry.version(history.other.ref).at
    signing_time = history.scene.ledger.attestations.find("edge", run=history.other.agent.run)[0].at
    assert datetime.fromisoformat(signing_time) < registration_time
    assert history.problems(datetime.fromisoformat(signing_time)) == ()


def test_verifying_an_agent_at_an_earlier_time_ignores_later_records(history):
    earlier_sources = history.scene.sources.as_of(history.then)
    history.change(DELETE_USE, history.other.agent.run)
    history.scene.registry.set_alias(history.scene.ref, "production")
    sentence = "the statement that alias 'shell-agent@production' meant shell-agent@2 from"
    current_problems = verify_agent(history.scene.ref, history.scene.sources).problems
    assert [problem for problem in current_problems if problem.startswith(sentence)]
    verification = verify_agent(history.scene.ref, earlier_sources)
    assert verification.at == history.then.isoformat()
    assert not [problem for problem in verification.problems if problem.startswith(sentence)]
    with pytest.raises(NotFound, match="shell-agent@2 was not registered by"):
        verify_agent(history.other.ref, earlier_sources)


def test_an_earlier_record_is_verified_in_its_present_state(history):
    with closing(sqlite3.connect(history.scene.store / "ledger.db")) as database, database:
        database.execute("UPDATE steps SET reward = 1.0")
    assert any(
        problem.startswith(f"run {history.scene.agent.run}: ")
        for problem in history.problems(history.then)
    )
