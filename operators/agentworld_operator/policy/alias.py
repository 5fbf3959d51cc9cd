"""Resolves the spec of a SimulatorAlias, compares it with the ledger, and decides its status."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agentworld.cluster.names import OPERATOR
from agentworld.cluster.records.alias import AliasSpec, AliasStatus
from agentworld.records.base import Digest, digest_json
from agentworld.records.gate import Gate
from agentworld.records.statements.alias import AliasChange, AliasMove, Canary, Meaning
from agentworld_operator.policy.conditions import ConditionState, conditions
from agentworld_operator.policy.problem import Problem

Object = Mapping[str, Any]

OPERATOR_ACTOR = f"{OPERATOR} (by comparing lists; nobody asked)"
"""The recorded author of a correction, if the cluster did not do what was recorded."""


def request_of(alias: Object) -> str:
    """An id of an object's spec, unique over all objects and specs."""
    return f"{alias['metadata']['uid']}/{alias['metadata']['generation']}"


def resolve(spec: AliasSpec, find: Callable[[str], Object | None]) -> Meaning | Problem:
    """The simulators of the named objects; `find` looks up a Simulator."""
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


def aliases_of(simulator: str, aliases: Iterable[Object]) -> list[str]:
    """The aliases whose specs name a Simulator as target or canary."""
    return [
        alias["metadata"]["name"]
        for alias in aliases
        if "deletionTimestamp" not in alias["metadata"] and _refers_to(alias["spec"], simulator)
    ]


def _refers_to(spec: Object, simulator: str) -> bool:
    canary = spec.get("canary") or {}
    return simulator in (spec.get("simulator"), canary.get("simulator"))


def move(spec: AliasSpec, meaning: Meaning, by: str, request: str) -> AliasMove:
    """The move for the service to judge and record."""
    return AliasMove(
        kind="simulator",
        simulator=meaning.simulator,
        canary=meaning.canary,
        by=by,
        gate=spec.gate,
        report=spec.report,
        override=spec.override.reason if spec.override else None,
        request=request,
    )


def is_recorded(last: AliasChange | None, alias_move: AliasMove) -> bool:
    """Whether the ledger's last change is this move.

    An API server repeats an admission request as a new one if the object was changed meanwhile.
    """
    if last is None or last.ended:
        return False
    gates = tuple(Gate(metric=result.metric, least=result.least) for result in last.gate)
    is_passed = gates and all(result.passed for result in last.gate)
    last_terms = last.meaning, last.set_by, last.report, gates, last.override, last.request
    override = None if is_passed else alias_move.override
    move_terms = (
        Meaning(alias_move.simulator, alias_move.canary),
        alias_move.by,
        alias_move.report,
        alias_move.gate,
        override,
        alias_move.request,
    )
    return last_terms == move_terms


def key(request: str, alias_move: AliasMove | None, last: AliasChange | None) -> str:
    """An idempotency key: a repeated request after the same change is recorded once."""
    records = (alias_move, last)
    parts = [request, *(record and record.model_dump(mode="json") for record in records)]
    return digest_json(parts).removeprefix("sha256:")


class Comparison(NamedTuple):
    """An object's spec, and the ledger's history of its name."""

    request: str
    history: Sequence[AliasChange]

    @property
    def last(self) -> AliasChange | None:
        """The last change in the ledger."""
        return self.history[-1] if self.history else None

    @property
    def is_recorded(self) -> bool:
        """Whether the last change is the one that this spec requested."""
        return bool(self.last and not self.last.ended and self.last.request == self.request)

    @property
    def change_to_restore(self) -> AliasChange | None:
        """The recorded change of this spec, if only requests of objects were recorded after it.

        The last of those is in progress, or the cluster refused it. A change by a command is
        neither, and no earlier change counts after it.
        """
        if self.is_recorded:
            return None
        for change in reversed(self.history):
            if change.request is None:
                return None
            if change.request == self.request and not change.ended:
                return change
        return None


def build_return_move(change: AliasChange) -> AliasMove:
    """The move back to the target before a recorded request that the cluster refused."""
    return AliasMove(
        kind="simulator",
        simulator=change.simulator,
        canary=change.canary,
        by=OPERATOR_ACTOR,
        override=f"the cluster refused the request after that of {change.set_by} at {change.at}",
        request=change.request,
    )


def recorded_condition(comparison: Comparison) -> ConditionState:
    """Whether the alias has the target that the object requests."""
    last = comparison.last
    if comparison.is_recorded and last:
        if last.set_by == OPERATOR_ACTOR:
            return ConditionState("Recorded", "True", "Returned", f"at {last.at}: {last.override}")
        return ConditionState(
            "Recorded", "True", "AsAsked", f"{last.set_by} asked for it at {last.at}"
        )
    meaning = "means nothing" if last is None or last.ended else f"means {last.simulator}"
    source = f", by {last.set_by} at {last.at}" if last else ""
    if comparison.change_to_restore:
        message = f"the name {meaning}{source}; if the cluster refused that, this counts again soon"
        return ConditionState("Recorded", "False", "Overtaken", message)
    message = f"the name {meaning}{source}; change the spec to have it judged and recorded"
    return ConditionState("Recorded", "False", "NotAsked", message)


class AliasState(NamedTuple):
    """The state of a SimulatorAlias."""

    generation: int
    status: AliasStatus
    """The last reported status."""
    spec_meaning: Meaning | Problem
    """The current result of resolving the spec."""
    comparison: Comparison | None
    """The history; null if the ledger is unavailable."""
    recorded: ConditionState


def build_status(alias: AliasState, now: str) -> AliasStatus:
    """The new status; equal to the last one if nothing changed."""
    digest, canary_digest = alias.status.digest, alias.status.canary_digest
    if alias.comparison:
        last = alias.comparison.last
        meaning = last.meaning if last else None
        digest = meaning.simulator if meaning else None
        canary_digest = meaning.canary.simulator if meaning and meaning.canary else None
    states = [_resolved_condition(alias), alias.recorded]
    return AliasStatus(
        observed_generation=alias.generation,
        digest=digest,
        canary_digest=canary_digest,
        conditions=conditions(alias.status.conditions, states, alias.generation, now),
    )


def _resolved_condition(alias: AliasState) -> ConditionState:
    """Whether the named Simulators exist, and are the recorded ones."""
    spec_meaning, comparison = alias.spec_meaning, alias.comparison
    if isinstance(spec_meaning, Problem):
        return ConditionState("Resolved", "False", *spec_meaning)
    last = comparison.last if comparison and comparison.is_recorded else None
    if last and last.meaning != spec_meaning:
        message = (
            f"the spec names {spec_meaning.simulator} by now, and the name means {last.simulator};"
            " change the spec to move it"
        )
        return ConditionState("Resolved", "False", "AnotherSimulator", message)
    return ConditionState("Resolved", "True", "Found")
