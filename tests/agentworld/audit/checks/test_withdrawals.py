"""Deleted versions are reported until their withdrawal is declared."""

import sqlite3
from contextlib import closing

import pytest

import make.agent
import make.service
from agentworld.audit.checks.store import verify_agent, verify_everything
from agentworld.audit.checks.withdrawals import missing_versions
from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.lineage.base import Agent
from agentworld.lineage.memory import MemoryRegistry
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.records.statements.withdrawal import Withdrawal
from agentworld.signing.envelope import attest, verify_row
from agentworld.signing.keys import ensure_signer, load_trusted
from agentworld.statements.genesis import now
from agentworld.storage.objects import WriteOnce
from make import records
from make.statement import registered
from make.story import Story, story, without

pytestmark = pytest.mark.compute

REFS = ("hero@1", "world@1")


@pytest.fixture
def history(tmp_path) -> Story:
    return story(tmp_path)


def find_problems(history: Story) -> tuple[str, ...]:
    return verify_everything(history.sources).problems


def missing_refs(history: Story) -> list[str]:
    return [version.ref for version in missing_versions(history.sources).versions]


def withdrawals(history: Story) -> list[Withdrawal]:
    return missing_versions(history.sources).withdrawals("it was no good", "ada", now())


def withdraw(history: Story) -> None:
    statement_signer = make.service.log_signer(history.store, None).statement_signer
    for withdrawal in withdrawals(history):
        statement_signer.declare(withdrawal)


def other_agent(history: Story) -> Agent:
    """An agent like that of the story, with its own record."""
    agent = history.sources.registry.agent(history.agent)
    checkpoint = agent.checkpoint.model_copy(update={"metrics": {"reward": 1.0}})
    return agent.model_copy(update={"checkpoint": checkpoint})


def test_a_complete_registry_has_no_missing_versions(history):
    assert missing_refs(history) == []


@pytest.mark.parametrize("ref", REFS)
def test_a_withdrawn_version_is_no_longer_missing(history, ref):
    incomplete = without(history, ref)
    assert missing_refs(incomplete) == [ref]
    withdraw(incomplete)
    assert missing_refs(incomplete) == []
    assert find_problems(incomplete) == ()
    earlier = incomplete._replace(sources=incomplete.sources.as_of(incomplete.moments["an agent"]))
    assert find_problems(earlier) == ()


@pytest.mark.parametrize("ref", REFS)
def test_another_deleted_version_is_still_missing_after_a_withdrawal(history, ref):
    withdraw(without(history, ref))
    other_ref = next(name for name in REFS if name != ref)
    assert missing_refs(without(history, other_ref)) == [other_ref]


def test_a_deleted_version_whose_number_was_reused_is_missing_until_withdrawn(history):
    incomplete = without(history, "hero@1")
    agent = other_agent(history)
    registered("hero", agent, history.store / "agent", incomplete.sources.registry, history.store)
    assert missing_refs(incomplete) == ["hero@1"]
    withdraw(incomplete)
    assert find_problems(incomplete) == ()
    assert verify_everything(incomplete.sources).num_unsigned == 0


def test_a_withdrawn_version_registered_again_is_signed_and_can_be_missing_again(history):
    incomplete = without(history, "hero@1")
    withdraw(incomplete)
    agent, model = history.sources.registry.agent(history.agent), history.store / "agent"
    assert (
        registered("hero", agent, model, incomplete.sources.registry, history.store)
        == history.agent
    )
    assert find_problems(incomplete) == ()
    assert verify_everything(incomplete.sources).num_unsigned == 0
    assert missing_refs(without(history, "hero@1")) == ["hero@1"]


def test_a_withdrawn_version_that_still_exists_is_reported(history):
    withdraw(without(history, "hero@1"))
    (problem,) = find_problems(history)
    assert problem.startswith("hero@1: it was withdrawn but exists")
    assert problem in verify_agent(history.agent, history.sources).problems
    states = {
        finding.subject: finding.grade for finding in verify_everything(history.sources).versions
    }
    assert states == {"hero@1": "unsigned", "world@1": "verified"}


def test_a_withdrawal_signed_with_an_untrusted_key_is_reported_and_ignored(history, tmp_path):
    incomplete = without(history, "hero@1")
    (withdrawal,) = withdrawals(incomplete)
    incomplete.sources.ledger.attestations.add(
        attest(withdrawal, ensure_signer(tmp_path / "stranger"))
    )
    with pytest.raises(EvidenceError, match="the withdrawal .* does not verify"):
        missing_refs(incomplete)
    problems = find_problems(incomplete)
    assert any(
        problem.startswith(f"the withdrawal {withdrawal.path} of hero@1 does")
        for problem in problems
    )
    assert any(
        problem.startswith("hero@1: mirror differs in version: MLflow says nothing")
        for problem in problems
    )


def test_a_deleted_withdrawal_is_reported_from_its_mirror_copy(history):
    incomplete = without(history, "hero@1")
    withdraw(incomplete)
    with closing(sqlite3.connect(history.store / "ledger.db")) as database, database:
        statement = "DELETE FROM attestations WHERE kind = 'withdrawal'"
        assert database.execute(statement).rowcount == 1
    problems = find_problems(incomplete)
    assert any(
        problem.endswith("of hero@1 is gone from the ledger; restore it") for problem in problems
    )
    assert any(
        problem.startswith("hero@1: mirror differs in version: MLflow says nothing")
        for problem in problems
    )


def test_missing_versions_raises_if_a_statement_does_not_verify(history):
    incomplete = without(history, "hero@1")
    with closing(sqlite3.connect(history.store / "ledger.db")) as database, database:
        database.execute("UPDATE attestations SET envelope = '{}' WHERE subject = 'hero@1'")
    with pytest.raises(EvidenceError, match="does not verify"):
        missing_refs(incomplete)


def test_missing_versions_raises_if_a_statement_row_is_unreadable(history):
    incomplete = without(history, "hero@1")
    with closing(sqlite3.connect(history.store / "ledger.db")) as database, database:
        garbled = "UPDATE attestations SET envelope = CAST(x'ff' AS TEXT) WHERE subject = 'hero@1'"
        database.execute(garbled)
    with pytest.raises(EvidenceError, match="of hero@1 .*does not verify: this is not an envelope"):
        missing_refs(incomplete)


def test_missing_versions_raises_without_a_step_key(history):
    evidence = history.sources.evidence._replace(step_keys=None)
    with pytest.raises(InputError, match="no step key"):
        missing_versions(history.sources._replace(evidence=evidence))


def test_missing_versions_of_an_empty_registry_must_be_named(history):
    empty = history._replace(sources=history.sources._replace(registry=MemoryRegistry()))
    with pytest.raises(InputError, match="the registry has none of 2 registered versions"):
        missing_versions(empty.sources)
    assert [version.ref for version in missing_versions(empty.sources, ["hero@1"]).versions] == [
        "hero@1"
    ]
    with pytest.raises(NotFound, match="hero@2 is not a missing version"):
        missing_versions(empty.sources, ["hero@2"])


def test_two_registration_statements_of_a_version_are_withdrawn_together(history):
    """Two callers signed them at the same time."""
    row = history.sources.ledger.attestations.find("registration", subject="hero@1")[0]
    keys = load_trusted(history.store / "keys/steps")
    registration = verify_row(row, RegisteredVersion, keys)
    later_registration = registration.model_copy(update={"at": now()})
    twin = attest(later_registration, ensure_signer(history.store / "keys/steps"))
    history.sources.ledger.attestations.add(twin)
    WriteOnce(str(history.store / "mirror")).put(twin.name, twin.envelope)
    incomplete = without(history, "hero@1")
    assert missing_refs(incomplete) == ["hero@1", "hero@1"]
    withdraw(incomplete)
    assert missing_refs(incomplete) == []
    assert find_problems(incomplete) == ()


def test_an_edge_is_not_reported_as_missing_after_its_version_was_withdrawn(tmp_path):
    ensure_signer(tmp_path / "keys/steps")
    agent, registries = make.agent.registered(tmp_path), [MemoryRegistry(), MemoryRegistry()]
    assert agent.agent.edge
    claim = agent.agent.edge.edge.claim.model_copy(update={"data": (records.digest("more"),)})
    edge = agent.statement_signer.edge(agent.ledger.run(agent.agent.run), claim)
    newer_agent = agent.agent.model_copy(update={"edge": edge})
    for registry in registries:
        registered(agent.ref.name, agent.agent, tmp_path / "model", registry, tmp_path)
    sources = agent.sources._replace(step_keys=load_trusted(tmp_path / "keys/steps"))

    def find_problems_of(sources):  # the agent's files differ from its weights' digest
        problems = verify_everything(sources).problems
        return [problem for problem in problems if "mirror differs in files" not in problem]

    complete, incomplete = (sources._replace(registry=registry) for registry in registries)
    assert (
        registered(
            agent.ref.name, newer_agent, tmp_path / "model", complete.registry, tmp_path
        ).version
        == 2
    )
    assert find_problems_of(complete) == []
    edge_problem, version_problem = find_problems_of(incomplete)
    assert version_problem.startswith(
        "shell-agent@2: mirror differs in version: MLflow says nothing"
    )
    assert "mirror differs in edge of run" in edge_problem
    for withdrawal in missing_versions(incomplete).withdrawals("it was no good", "ada", now()):
        agent.statement_signer.declare(withdrawal)
    assert find_problems_of(incomplete) == []
    problem, *_ = find_problems_of(incomplete._replace(registry=MemoryRegistry()))
    assert problem.startswith("shell-agent@1: mirror differs in version: MLflow says nothing")
