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
from make.agent import Made
from make.story import moment
from make.template import copied

pytestmark = pytest.mark.compute


class Told(NamedTuple):
    """The events: a first agent and its use, a time, and then a second agent."""

    made: Made
    other: Made
    then: datetime

    def problems(self, at: datetime | None = None) -> tuple[str, ...]:
        """Without what these stores never have: signed weights and registrations."""
        found = verify_everything(self.made.sources.as_of(at)).problems
        return tuple(each for each in found if not any(word in each for word in _NEVER))

    def change(self, statement: str, *values: object) -> None:
        make.agent.lose(self.made, statement, *values)


_NEVER = ("its signature registration.dsse.json is missing", "mirror differs in files")
RUN = "UPDATE runs SET final_weights = ? WHERE id = ?"
NOBODYS = "INSERT INTO aliases (alias, simulator, set_by, at) VALUES ('stable', ?, 'eve', ?)"
BOTH_KINDS = pytest.mark.parametrize("alias", ["stable", "shell-agent@production"])


@pytest.fixture
def told(tmp_path) -> Told:
    return copied(used_twice, tmp_path)


def used_twice(store) -> Told:
    made = make.agent.registered(store)
    made.use()
    set_alias("stable", made.simulator.digest, store, "ada")
    then = moment()
    other = make.agent.registered(store, made.registry, "other")
    other.use()
    following = records.pinned(store, context_tokens=512)
    set_alias("stable", following.digest, store, "ada")
    return Told(made, other, then)


def test_signed_records_from_after_the_audited_time_are_no_problem(told):
    assert (told.problems(told.then), told.problems()) == ((), ())


def test_an_agents_alias_is_not_resolved_as_a_simulator_at_any_time(told):
    for at in (None, told.then):
        sources = told.made.sources.as_of(at) if at else told.made.sources
        assert sources.resolve("stable") != "stable"
        assert sources.resolve("shell-agent@production") == "shell-agent@production"


def test_the_result_contains_the_audited_time(told):
    found = verify_everything(told.made.sources.as_of(told.then))
    assert found.at == told.then.isoformat()
    assert verify_everything(told.made.sources).at is None


def test_only_runs_and_versions_that_existed_at_the_time_are_verified(told):
    found = verify_everything(told.made.sources.as_of(told.then))
    assert list(found.runs) == [told.made.agent.run]
    assert [each.subject for each in found.versions] == ["shell-agent@1"]
    now = verify_everything(told.made.sources)
    assert set(now.runs) == {told.made.agent.run, told.other.agent.run}
    unsigned = told.made.sources._replace(evidence=None).as_of(told.then)
    assert list(verify_everything(unsigned).runs) == [told.made.agent.run]


def early(told: Told) -> str:
    return told.then.isoformat(timespec="milliseconds")


def late(_told: Told) -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


USE = (
    "DELETE FROM attestations WHERE kind = 'alias'"
    " AND at = (SELECT at FROM aliases WHERE kind = 'agent' AND run = ?)"
)


def test_run_problems_are_reported_only_at_times_when_the_run_existed(told):
    told.change(RUN, records.digest("evil"), told.other.agent.run)
    assert told.problems()
    assert told.problems(told.then) == ()
    told.change(RUN, records.digest("evil"), told.made.agent.run)
    assert told.problems(told.then)


@pytest.mark.parametrize(("when", "is_told"), [(early, True), (late, False)])
def test_an_unsigned_alias_change_is_reported_only_from_its_time_on(told, when, is_told):
    told.change(NOBODYS, records.digest("evil"), when(told))
    assert any("which is not signed" in problem for problem in told.problems())
    assert bool(told.problems(told.then)) == is_told


@BOTH_KINDS
def test_a_deleted_alias_statement_is_reported_only_from_its_time_on(told, alias):
    make.service.log_signer(told.made.store).statement_signer.copy_missing()
    for found in told.made.ledger.attestations.find("alias", subject=alias)[::-1]:
        assert told.problems(told.then) == ()
        told.change("DELETE FROM attestations WHERE name = ?", found.name)
        assert any("is gone from the ledger" in problem for problem in told.problems())
    assert any("is gone from the ledger" in problem for problem in told.problems(told.then))


@BOTH_KINDS
def test_an_alias_row_with_a_later_envelope_is_reported_at_times_in_between(told, alias):
    row, later = told.made.ledger.attestations.find("alias", subject=alias)
    told.change("UPDATE attestations SET envelope = ? WHERE name = ?", later.envelope, row.name)
    problem = "the statement of alias {!r} at {} differs in the evidence mirror"
    assert problem.format(alias, row.at) in told.problems(told.then)


@BOTH_KINDS
def test_an_alias_copy_with_a_later_envelope_is_reported_at_times_in_between(told, alias):
    row, later = told.made.ledger.attestations.find("alias", subject=alias)
    (told.made.store / "mirror" / row.name).write_bytes(later.envelope)
    (found,) = told.problems(told.then)
    assert found.endswith("differs in the evidence mirror")


def test_records_without_a_readable_time_are_verified_at_every_time(told):
    told.change("UPDATE log SET body = 'text' WHERE run = ?", told.other.agent.run)
    told.change("UPDATE attestations SET envelope = x'00' WHERE run = ?", told.other.agent.run)
    (weights,) = told.made.simulator.folder.glob("model/model.safetensors")
    weights.chmod(0o644)
    weights.write_text("other")
    found = " ".join(told.problems(told.then))
    assert f"run {told.other.agent.run}: entry 1 of the log is missing, garbled" in found
    assert f"simulator {told.made.simulator.digest}: " in found


def test_later_declarations_explain_losses_and_erasures_at_an_earlier_time(told):
    lost = told.made.ledger.attestations.find("edge", run=told.made.agent.run)[0].name
    told.change("DELETE FROM attestations WHERE name = ?", lost)
    words = {"reason": "a backup", "by": "ada", "at": late(told)}
    told.made.statement_signer.declare(Restore(run="", lost=(lost,), **words))
    (episode, *_) = told.made.ledger.episodes(told.made.agent.run)
    erase_episode(episode.id, told.made.store, "ada")
    problems = told.problems(told.then)
    assert not [each for each in problems if lost in each or episode.id in each]


def test_an_earlier_audit_compares_only_registry_aliases_that_did_not_move_since(told):
    told.other.registry.remove_alias("shell-agent", "production")
    assert told.problems()
    assert told.problems(told.then) == ()
    told.made.registry.set_alias(told.made.ref, "trial")
    (problem,) = told.problems(told.then)
    assert "shell-agent: mirror differs in alias trial: MLflow says 1" in problem


def test_an_edge_signed_before_its_agents_registration_is_no_problem_in_between(told):
    registered = told.other.registry.version(told.other.ref).at
    signed = told.made.ledger.attestations.find("edge", run=told.other.agent.run)[0].at
    assert datetime.fromisoformat(signed) < registered
    assert told.problems(datetime.fromisoformat(signed)) == ()


def test_verifying_an_agent_at_an_earlier_time_ignores_later_records(told):
    then = told.made.sources.as_of(told.then)
    told.change(USE, told.other.agent.run)
    told.made.registry.set_alias(told.made.ref, "production")
    gone = "the statement that alias 'shell-agent@production' meant shell-agent@2 from"
    now = verify_agent(told.made.ref, told.made.sources).problems
    assert [each for each in now if each.startswith(gone)]
    found = verify_agent(told.made.ref, then)
    assert found.at == told.then.isoformat()
    assert not [each for each in found.problems if each.startswith(gone)]
    with pytest.raises(NotFound, match="shell-agent@2 was not registered by"):
        verify_agent(told.other.ref, then)


def test_an_earlier_record_is_verified_in_its_present_state(told):
    with closing(sqlite3.connect(told.made.store / "ledger.db")) as database, database:
        database.execute("UPDATE steps SET reward = 1.0")
    assert any(each.startswith(f"run {told.made.agent.run}: ") for each in told.problems(told.then))
