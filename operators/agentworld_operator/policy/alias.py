"""Resolves a SimulatorAlias, and decides its status."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agentworld.cluster.names import OPERATOR
from agentworld.cluster.records.alias import AliasSpec, AliasStatus
from agentworld.records.alias import AliasChange, AliasMove, Canary, Meaning
from agentworld.records.base import Digest
from agentworld.records.gate import Gate
from agentworld_operator.policy.conditions import ConditionState, conditions
from agentworld_operator.policy.problem import Problem

Object = Mapping[str, Any]

BYPASS_ACTOR = f"{OPERATOR} (as found; nobody asked before)"
"""Who moved a name that the webhook was not asked about."""
_REASON = "it was so on the cluster already, past the webhook"


def resolve(spec: AliasSpec, find: Callable[[str], Object | None]) -> Meaning | Problem:
    """The simulators that the named objects are; `find` looks for a Simulator."""
    digest = _digest(spec.simulator, find(spec.simulator))
    if isinstance(digest, Problem):
        return digest
    if spec.canary is None:
        return Meaning(digest)
    canary_digest = _digest(spec.canary.simulator, find(spec.canary.simulator))
    if isinstance(canary_digest, Problem):
        return canary_digest
    return Meaning(digest, Canary(simulator=canary_digest, percent=spec.canary.percent))


def _digest(name: str, simulator: Object | None) -> Digest | Problem:
    if simulator is None:
        return Problem("NoSimulator", f"there is no Simulator {name}; create it, or name another")
    status = simulator.get("status") or {}
    for condition in status.get("conditions", ()):
        if (condition["type"], condition["status"]) == ("Verified", "False"):
            reason = condition.get("message") or condition["reason"]
            return Problem(
                "NotVerified", f"the Simulator {name} does not verify ({reason}); name another"
            )
    digest: Digest | None = status.get("digest")
    if digest is None:
        return Problem(
            "NoDigest", f"the Simulator {name} has no digest yet; wait until its status tells one"
        )
    return digest


def move(spec: AliasSpec, meaning: Meaning, by: str) -> AliasMove:
    """What the service is asked to judge and to record."""
    return AliasMove(
        simulator=meaning.simulator,
        canary=meaning.canary,
        by=by,
        gate=spec.gate,
        report=spec.report,
        override=spec.override.reason if spec.override else None,
    )


def is_recorded(last: AliasChange | None, alias_move: AliasMove) -> bool:
    """Whether the ledger's last word is this very move.

    An API server asks again, and each time as if it were the first, where somebody else wrote to
    the object meanwhile.
    """
    if last is None or last.ended:
        return False
    gates = tuple(Gate(metric=result.metric, least=result.least) for result in last.gate)
    is_passed = gates and all(result.passed for result in last.gate)
    last_terms = last.simulator, last.canary, last.set_by, last.report, gates, last.override
    override = None if is_passed else alias_move.override
    gate_fields = (
        alias_move.simulator,
        alias_move.canary,
        alias_move.by,
        alias_move.report,
        alias_move.gate,
        override,
    )
    return last_terms == gate_fields


def build_bypass_move(meaning: Meaning) -> AliasMove:
    """The same for what is so already, and can only be recorded."""
    return AliasMove(
        simulator=meaning.simulator, canary=meaning.canary, by=BYPASS_ACTOR, override=_REASON
    )


def recorded_condition(last: AliasChange) -> ConditionState:
    """Of a name whose meaning the ledger knows."""
    if last.set_by == BYPASS_ACTOR:
        message = f"nobody asked before it was so: recorded as found at {last.at}"
        return ConditionState("Recorded", "True", "AsFound", message)
    return ConditionState("Recorded", "True", "AsAsked", f"{last.set_by} asked for it at {last.at}")


def settling_condition(last: AliasChange | None) -> ConditionState:
    """Of a name for which the ledger says something else, which may be on its way."""
    last_meaning = "nothing" if last is None or last.ended else last.simulator
    message = f"the ledger says {last_meaning}; this is recorded as found if it stays so"
    return ConditionState("Recorded", "False", "Differs", message)


class AliasState(NamedTuple):
    """A SimulatorAlias as it is."""

    generation: int
    status: AliasStatus
    meaning: Meaning | Problem
    recorded: ConditionState


def build_status(alias: AliasState, now: str) -> AliasStatus:
    """What is said now; equal to what was said last where nothing changed."""
    meaning = alias.meaning
    if isinstance(meaning, Problem):
        condition, digest, canary = ConditionState("Resolved", "False", *meaning), None, None
    else:
        condition, digest = ConditionState("Resolved", "True", "Found"), meaning.simulator
        canary = meaning.canary.simulator if meaning.canary else None
    previous = alias.status.conditions
    return AliasStatus(
        observed_generation=alias.generation,
        digest=digest,
        canary_digest=canary,
        conditions=conditions(previous, [condition, alias.recorded], alias.generation, now),
    )
