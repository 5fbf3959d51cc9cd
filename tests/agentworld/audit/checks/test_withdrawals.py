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
def told(tmp_path) -> Story:
    return story(tmp_path)


def problems(told: Story) -> tuple[str, ...]:
    return verify_everything(told.sources).problems


def missing(told: Story) -> list[str]:
    return [each.ref for each in missing_versions(told.sources).versions]


def withdrawals(told: Story) -> list[Withdrawal]:
    return missing_versions(told.sources).withdrawals("it was no good", "ada", now())


def withdraw(told: Story) -> None:
    statement_signer = make.service.log_signer(told.store, None).statement_signer
    for each in withdrawals(told):
        statement_signer.declare(each)


def other(told: Story) -> Agent:
    """An agent like that of the story, with its own record."""
    agent = told.sources.registry.agent(told.agent)
    checkpoint = agent.checkpoint.model_copy(update={"metrics": {"reward": 1.0}})
    return agent.model_copy(update={"checkpoint": checkpoint})


def test_a_complete_registry_has_no_missing_versions(told):
    assert missing(told) == []


@pytest.mark.parametrize("ref", REFS)
def test_a_withdrawn_version_is_no_longer_missing(told, ref):
    lost = without(told, ref)
    assert missing(lost) == [ref]
    withdraw(lost)
    assert missing(lost) == []
    assert problems(lost) == ()
    at = lost._replace(sources=lost.sources.as_of(lost.moments["an agent"]))
    assert problems(at) == ()


@pytest.mark.parametrize("ref", REFS)
def test_another_deleted_version_is_still_missing_after_a_withdrawal(told, ref):
    withdraw(without(told, ref))
    other = next(each for each in REFS if each != ref)
    assert missing(without(told, other)) == [other]


def test_a_deleted_version_whose_number_was_reused_is_missing_until_withdrawn(told):
    lost = without(told, "hero@1")
    made = other(told)
    registered("hero", made, told.store / "agent", lost.sources.registry, told.store)
    assert missing(lost) == ["hero@1"]
    withdraw(lost)
    assert problems(lost) == ()
    assert verify_everything(lost.sources).num_unsigned == 0


def test_a_withdrawn_version_registered_again_is_signed_and_can_be_missing_again(told):
    lost = without(told, "hero@1")
    withdraw(lost)
    agent, model = told.sources.registry.agent(told.agent), told.store / "agent"
    assert registered("hero", agent, model, lost.sources.registry, told.store) == told.agent
    assert problems(lost) == ()
    assert verify_everything(lost.sources).num_unsigned == 0
    assert missing(without(told, "hero@1")) == ["hero@1"]


def test_a_withdrawn_version_that_still_exists_is_reported(told):
    withdraw(without(told, "hero@1"))
    (problem,) = problems(told)
    assert problem.startswith("hero@1: it was withdrawn but exists")
    assert problem in verify_agent(told.agent, told.sources).problems
    states = {each.subject: each.grade for each in verify_everything(told.sources).versions}
    assert states == {"hero@1": "unsigned", "world@1": "verified"}


def test_a_withdrawal_signed_with_an_untrusted_key_is_reported_and_ignored(told, tmp_path):
    lost = without(told, "hero@1")
    (made,) = withdrawals(lost)
    lost.sources.ledger.attestations.add(attest(made, ensure_signer(tmp_path / "stranger")))
    with pytest.raises(EvidenceError, match="the withdrawal .* does not verify"):
        missing(lost)
    found = problems(lost)
    assert any(each.startswith(f"the withdrawal {made.path} of hero@1 does") for each in found)
    assert any(
        each.startswith("hero@1: mirror differs in version: MLflow says nothing") for each in found
    )


def test_a_deleted_withdrawal_is_reported_from_its_mirror_copy(told):
    lost = without(told, "hero@1")
    withdraw(lost)
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        statement = "DELETE FROM attestations WHERE kind = 'withdrawal'"
        assert database.execute(statement).rowcount == 1
    found = problems(lost)
    assert any(each.endswith("of hero@1 is gone from the ledger; restore it") for each in found)
    assert any(
        each.startswith("hero@1: mirror differs in version: MLflow says nothing") for each in found
    )


def test_missing_versions_raises_if_a_statement_does_not_verify(told):
    lost = without(told, "hero@1")
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        database.execute("UPDATE attestations SET envelope = '{}' WHERE subject = 'hero@1'")
    with pytest.raises(EvidenceError, match="does not verify"):
        missing(lost)


def test_missing_versions_raises_if_a_statement_row_is_unreadable(told):
    lost = without(told, "hero@1")
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        garbled = "UPDATE attestations SET envelope = CAST(x'ff' AS TEXT) WHERE subject = 'hero@1'"
        database.execute(garbled)
    with pytest.raises(EvidenceError, match="of hero@1 .*does not verify: this is not an envelope"):
        missing(lost)


def test_missing_versions_raises_without_a_step_key(told):
    evidence = told.sources.evidence._replace(step_keys=None)
    with pytest.raises(InputError, match="no step key"):
        missing_versions(told.sources._replace(evidence=evidence))


def test_missing_versions_of_an_empty_registry_must_be_named(told):
    other = told._replace(sources=told.sources._replace(registry=MemoryRegistry()))
    with pytest.raises(InputError, match="the registry has none of 2 registered versions"):
        missing_versions(other.sources)
    assert [each.ref for each in missing_versions(other.sources, ["hero@1"]).versions] == ["hero@1"]
    with pytest.raises(NotFound, match="hero@2 is not a missing version"):
        missing_versions(other.sources, ["hero@2"])


def test_two_registration_statements_of_a_version_are_withdrawn_together(told):
    """Submitted by two callers at the same time."""
    first = told.sources.ledger.attestations.find("registration", subject="hero@1")[0]
    keys = load_trusted(told.store / "keys/steps")
    known = verify_row(first, RegisteredVersion, keys)
    later = known.model_copy(update={"at": now()})
    twin = attest(later, ensure_signer(told.store / "keys/steps"))
    told.sources.ledger.attestations.add(twin)
    WriteOnce(str(told.store / "mirror")).put(twin.name, twin.envelope)
    lost = without(told, "hero@1")
    assert missing(lost) == ["hero@1", "hero@1"]
    withdraw(lost)
    assert missing(lost) == []
    assert problems(lost) == ()


def test_an_edge_is_not_reported_as_missing_after_its_version_was_withdrawn(tmp_path):
    ensure_signer(tmp_path / "keys/steps")
    made, registries = make.agent.registered(tmp_path), [MemoryRegistry(), MemoryRegistry()]
    assert made.agent.edge
    claim = made.agent.edge.edge.claim.model_copy(update={"data": (records.digest("more"),)})
    edge = made.statement_signer.edge(made.ledger.run(made.agent.run), claim)
    newer = made.agent.model_copy(update={"edge": edge})
    for registry in registries:
        registered(made.ref.name, made.agent, tmp_path / "model", registry, tmp_path)
    sources = made.sources._replace(step_keys=load_trusted(tmp_path / "keys/steps"))

    def told_of(sources):  # whose agent has other files than its weights' digest says
        found = verify_everything(sources).problems
        return [problem for problem in found if "mirror differs in files" not in problem]

    whole, lost = (sources._replace(registry=registry) for registry in registries)
    assert (
        registered(made.ref.name, newer, tmp_path / "model", whole.registry, tmp_path).version == 2
    )
    assert told_of(whole) == []
    unedged, vanished = told_of(lost)
    assert vanished.startswith("shell-agent@2: mirror differs in version: MLflow says nothing")
    assert "mirror differs in edge of run" in unedged
    for each in missing_versions(lost).withdrawals("it was no good", "ada", now()):
        made.statement_signer.declare(each)
    assert told_of(lost) == []
    first, *_ = told_of(lost._replace(registry=MemoryRegistry()))
    assert first.startswith("shell-agent@1: mirror differs in version: MLflow says nothing")
