"""Versions that people took away are missed until somebody declares it."""

import sqlite3
from contextlib import closing

import pytest

import make_service
from agentworld.audit.everything import verify_everything
from agentworld.audit.gone import gone
from agentworld.evidence.declared import attested
from agentworld.evidence.keys import ensure_signer
from agentworld.lineage.base import Agent
from agentworld.records.declaration import Withdrawal
from agentworld.simulate.adopting import now
from make_statement import registered
from make_story import Story, story, without

REFS = ("hero@1", "world@1")


@pytest.fixture
def told(tmp_path) -> Story:
    return story(tmp_path)


def problems(told: Story) -> tuple[str, ...]:
    return verify_everything(told.sources).problems


def missing(told: Story) -> list[str]:
    return [each.ref for each in gone(told.sources).versions]


def withdrawals(told: Story) -> list[Withdrawal]:
    return gone(told.sources).withdrawals("it was no good", "ada", now())


def withdraw(told: Story) -> None:
    notary = make_service.sealer(told.store, None).notary
    for each in withdrawals(told):
        notary.declare(each)


def other(told: Story) -> Agent:
    """An agent like that of the story, with a record of its own."""
    agent = told.sources.registry.agent(told.agent)
    checkpoint = agent.checkpoint.model_copy(update={"metrics": {"reward": 1.0}})
    return agent.model_copy(update={"checkpoint": checkpoint})


def test_of_a_registry_that_has_all_nothing_is_gone(told):
    assert missing(told) == []


@pytest.mark.parametrize("ref", REFS)
def test_a_version_that_was_withdrawn_is_missed_no_more(told, ref):
    lost = without(told, ref)
    assert missing(lost) == [ref]
    withdraw(lost)
    assert missing(lost) == []
    assert problems(lost) == ()
    at = lost._replace(sources=lost.sources._replace(at=lost.moments["an agent"]))
    assert problems(at) == ()


@pytest.mark.parametrize("ref", REFS)
def test_of_one_that_is_withdrawn_the_others_are_missed_as_before(told, ref):
    withdraw(without(told, ref))
    other = next(each for each in REFS if each != ref)
    assert missing(without(told, other)) == [other]


def test_a_number_that_was_given_again_is_gone_until_that_is_declared(told):
    lost = without(told, "hero@1")
    made = other(told)
    registered("hero", made, told.store / "agent", lost.sources.registry, told.store)
    assert missing(lost) == ["hero@1"]
    withdraw(lost)
    assert problems(lost) == ()
    assert verify_everything(lost.sources).num_unsigned == 0


def test_what_is_registered_again_after_it_was_withdrawn_is_signed_and_missed_anew(told):
    lost = without(told, "hero@1")
    withdraw(lost)
    agent, model = told.sources.registry.agent(told.agent), told.store / "agent"
    assert registered("hero", agent, model, lost.sources.registry, told.store) == told.agent
    assert problems(lost) == ()
    assert verify_everything(lost.sources).num_unsigned == 0
    assert missing(without(told, "hero@1")) == ["hero@1"]


def test_what_is_there_again_though_nobody_registered_it_again_is_unsigned(told):
    withdraw(without(told, "hero@1"))
    assert problems(told) == ()
    states = {each.version: each.state for each in verify_everything(told.sources).versions}
    assert states == {"hero@1": "unsigned", "world@1": "verified"}


def test_a_withdrawal_that_nobody_of_ours_signed_counts_for_nothing_and_is_named(told, tmp_path):
    lost = without(told, "hero@1")
    (made,) = withdrawals(lost)
    lost.sources.ledger.attestations.add(attested(made, ensure_signer(tmp_path / "stranger")))
    assert missing(lost) == ["hero@1"]
    found = problems(lost)
    assert any(each.startswith(f"the withdrawal {made.name} of hero@1 does") for each in found)
    assert any(each.startswith("hero@1: the registry does not have it") for each in found)


def test_a_withdrawal_that_was_taken_away_is_named_by_its_copy(told):
    lost = without(told, "hero@1")
    withdraw(lost)
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        statement = "DELETE FROM attestations WHERE kind = 'withdrawal'"
        assert database.execute(statement).rowcount == 1
    found = problems(lost)
    assert any(each.endswith("of hero@1 is gone from the ledger; restore it") for each in found)
    assert any(each.startswith("hero@1: the registry does not have it") for each in found)
