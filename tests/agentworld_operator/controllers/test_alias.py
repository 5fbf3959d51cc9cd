"""Reconciling an alias: its target is the ledger's, never the spec's."""

import asyncio
from types import SimpleNamespace

import pytest

from agentworld.cluster.records.alias import AliasStatus
from agentworld.errors import InputError, SimulatorError
from agentworld.records.statements.alias import AliasChange
from agentworld_operator.cache import Cache
from agentworld_operator.controllers.alias import AliasReconciler
from agentworld_operator.policy.alias import OPERATOR_ACTOR
from agentworld_operator.settings import OperatorSettings
from make import records
from make.simulator import NOW, alias, simulator, there

ONE, TWO = records.digest("one"), records.digest("two")
FIRST, SECOND = "uid-stable/1", "uid-stable/2"
"""Requests of one object."""
SETTINGS = OperatorSettings(
    namespace="n", identity="me", service_url="http://s", verifier_image="v", ask_seconds=5
)


def conditions(outcome):
    return {condition.type: condition.reason for condition in outcome.status.conditions}


class Ledger:
    """A simulator service that has the history of one alias."""

    def __init__(self, *changes):
        self.changes = [*changes]
        self.keys = []
        self.failure = None

    async def history(self, _name):
        if self.failure:
            raise self.failure
        return [*self.changes]

    async def histories(self):
        return [*self.changes]

    async def last(self, _name):
        return self.changes[-1] if self.changes else None

    async def move(self, name, move, key):
        self.keys.append(key)
        entry = change(name, move.simulator, move.by, move.request, override=move.override)
        self.changes.append(entry)
        return entry

    async def end(self, name, by, key, request):
        self.keys.append(key)
        self.changes.append(change(name, None, by, request))

    @property
    def moves(self):
        """The author and the target of each change."""
        return [(entry.set_by, entry.meaning and entry.meaning.simulator) for entry in self.changes]


def change(name="stable", simulator=ONE, by="ada", request=FIRST, **fields):
    ended = simulator is None
    defaults = {"alias": name, "set_by": by, "at": NOW, "request": request, "ended": ended}
    return AliasChange(simulator=simulator or ONE, **defaults, **fields)


class Aliases:
    """One alias, reconciled at times that a test sets."""

    def __init__(self, ledger):
        self.ledger, self.now, self.cache = ledger, 0.0, Cache()
        self.cluster = SimpleNamespace(listed=[], all=self.list)
        self.reconciler = AliasReconciler(
            self.cluster, self.cache, ledger, SETTINGS, settle_seconds=30, clock=lambda: self.now
        )
        for name, digest in (("one", ONE), ("two", TWO)):
            self.cache.put("Simulator", there(simulator(name), status={"digest": digest}))

    def list(self, _kind):
        return SimpleNamespace(objects=self.cluster.listed)

    def look(self, at=0.0, target="one", generation=1, before=None, listed=None):
        self.now = at
        resource = there(alias(target))
        resource["metadata"]["generation"] = generation
        self.cluster.listed = [resource] if listed is None else listed
        return asyncio.run(self.reconciler.reconcile(resource, before or AliasStatus(), NOW))

    def clean_up(self, at=0.0, *listed):
        self.now, self.cluster.listed = at, [*listed]
        return asyncio.run(self.reconciler.clean_up("stable"))


def test_an_alias_recorded_as_asked_is_reconciled_again_after_60_seconds():
    outcome = Aliases(Ledger(change())).look()
    assert conditions(outcome) == {"Resolved": "Found", "Recorded": "AsAsked"}
    assert (outcome.status.digest, outcome.look_again_seconds) == (ONE, 60)


@pytest.mark.parametrize(
    "history",
    [
        [],
        [change(simulator=TWO)],
        [change(), change(simulator=None, request=SECOND)],
        [change(request=None)],
        [change(request="uid-another/2")],
    ],
    ids=["nothing", "another spec", "an end", "a command", "another object"],
)
def test_a_spec_that_bypassed_the_webhook_is_never_recorded(history):
    """The spec may even equal an earlier spec (A to B to A)."""
    aliases = Aliases(Ledger(*history))
    for at in (0, 31, 62):
        outcome = aliases.look(at, generation=2)
        assert conditions(outcome)["Recorded"] == "NotAsked"
        last = history[-1].meaning if history else None
        assert outcome.status.digest == (last and last.simulator)
        assert outcome.look_again_seconds == 60
    assert aliases.ledger.keys == []


def test_a_move_by_a_command_is_not_reverted_to_an_earlier_request():
    aliases = Aliases(Ledger(change(), change(simulator=TWO, request=None)))
    assert conditions(aliases.look())["Recorded"] == "NotAsked"
    assert aliases.look(31).status.digest == TWO
    assert aliases.ledger.keys == []


OVERTAKING = pytest.mark.parametrize(
    "later",
    [
        change(simulator=TWO, by="bob", request=SECOND),
        change(simulator=TWO, by="bob", request="uid-another/1"),
        change(simulator=None, by="bob"),
    ],
    ids=["a move", "another object", "an end"],
)


@OVERTAKING
def test_a_recorded_change_refused_by_the_cluster_is_reverted_after_settling(later):
    aliases = Aliases(Ledger(change(), later))
    outcome = aliases.look()
    assert (conditions(outcome)["Recorded"], outcome.look_again_seconds) == ("Overtaken", 5)
    assert outcome.status.digest == (later.meaning and TWO)
    assert conditions(aliases.look(29.9))["Recorded"] == "Overtaken"
    outcome = aliases.look(30)
    assert (conditions(outcome)["Recorded"], outcome.look_again_seconds) == ("Returned", 60)
    assert outcome.status.digest == ONE
    assert aliases.ledger.moves[2:] == [(OPERATOR_ACTOR, ONE)]
    assert conditions(aliases.look(90))["Recorded"] == "Returned"
    assert len(aliases.ledger.keys) == 1


def test_a_difference_to_a_stale_watched_object_is_not_reverted():
    aliases = Aliases(Ledger(change(), change(simulator=TWO, request=SECOND)))
    newer_alias = there(alias("two"))
    newer_alias["metadata"]["generation"] = 2
    aliases.look(0)
    assert conditions(aliases.look(30, listed=[newer_alias]))["Recorded"] == "Overtaken"
    assert aliases.ledger.keys == []


def test_a_new_difference_restarts_the_settle_time():
    aliases = Aliases(Ledger(change(), change(simulator=TWO, request=SECOND)))
    aliases.look()
    aliases.ledger.changes.append(change(simulator=TWO, request="uid-stable/3"))
    assert conditions(aliases.look(30))["Recorded"] == "Overtaken"
    assert conditions(aliases.look(59))["Recorded"] == "Overtaken"
    assert conditions(aliases.look(60))["Recorded"] == "Returned"


def test_a_simulator_with_a_different_digest_is_reported_and_moves_no_alias():
    aliases = Aliases(Ledger(change(simulator=TWO)))
    outcome = aliases.look()
    assert conditions(outcome) == {"Resolved": "AnotherSimulator", "Recorded": "AsAsked"}
    assert outcome.status.digest == TWO


def test_an_alias_keeps_its_digest_when_its_simulator_is_missing():
    outcome = Aliases(Ledger(change())).look(target="nobody")
    assert conditions(outcome) == {"Resolved": "NoSimulator", "Recorded": "AsAsked"}
    assert outcome.status.digest == ONE


@pytest.mark.parametrize(
    ("failure", "reason"),
    [(SimulatorError("down"), "ServiceUnavailable"), (InputError("no"), "Refused")],
)
def test_a_service_failure_is_a_condition_and_keeps_the_last_digest(failure, reason):
    aliases = Aliases(Ledger())
    aliases.ledger.failure = failure
    outcome = aliases.look(before=AliasStatus(digest=TWO))
    assert (conditions(outcome)["Recorded"], outcome.status.digest) == (reason, TWO)


def test_an_alias_whose_object_is_missing_is_ended_after_settling():
    """An operator that never saw the object ends the alias, too."""
    aliases = Aliases(Ledger(change()))
    assert asyncio.run(aliases.reconciler.find_names_without_object()) == ["stable"]
    assert aliases.clean_up(1).look_again_seconds == 5
    assert aliases.clean_up(31).look_again_seconds is None
    assert aliases.ledger.moves == [("ada", ONE), (OPERATOR_ACTOR, None)]
    assert aliases.ledger.changes[-1].request == FIRST
    assert asyncio.run(aliases.reconciler.find_names_without_object()) == []
    aliases.clean_up(62)
    assert len(aliases.ledger.keys) == 1


def test_an_alias_with_an_object_is_not_reported_as_missing_its_object():
    aliases = Aliases(Ledger(change()))
    aliases.cache.put("SimulatorAlias", there(alias()))
    assert asyncio.run(aliases.reconciler.find_names_without_object()) == []


def test_an_alias_whose_object_is_not_in_the_cache_is_ended_only_after_deletion():
    aliases = Aliases(Ledger(change()))
    aliases.clean_up(0)
    assert aliases.clean_up(31, there(alias())).look_again_seconds == 5
    terminating_alias = there(alias())
    terminating_alias["metadata"]["deletionTimestamp"] = NOW
    aliases.clean_up(62, terminating_alias)
    assert aliases.ledger.moves[-1] == (OPERATOR_ACTOR, None)


def test_an_alias_set_by_a_command_needs_no_object():
    aliases = Aliases(Ledger(change(), change(request=None)))
    assert asyncio.run(aliases.reconciler.find_names_without_object()) == []
    assert aliases.clean_up(0).look_again_seconds is None
    aliases.clean_up(31)
    assert aliases.ledger.keys == []


def test_a_simulator_change_affects_the_aliases_that_name_the_simulator():
    aliases = Aliases(Ledger())
    aliases.cache.put("SimulatorAlias", there(alias("one")))
    aliases.cache.put("SimulatorAlias", there(alias("two", "other")))
    assert aliases.reconciler.affected_names("Simulator", there(simulator("one"))) == ["stable"]
    assert aliases.reconciler.affected_names("SimulatorAlias", there(alias())) == ["stable"]
    assert aliases.reconciler.affected_names("Pod", there(alias())) == []
