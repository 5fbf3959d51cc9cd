"""Conditions: what is said now, with the moment at which it became so."""

from collections.abc import Iterable
from typing import NamedTuple

from agentworld.cluster.records.base import Condition, ConditionStatus

_MOST_CHARACTERS = 32_768
"""Of a message; it may quote what another system answered."""


class ConditionState(NamedTuple):
    """One thing, as it is now."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""


def conditions(
    before: Iterable[Condition], states: Iterable[ConditionState], generation: int, now: str
) -> tuple[Condition, ...]:
    """All that is said now; what did not change keeps its time, and equal words stay equal."""
    previous = {condition.type: condition for condition in before}
    return tuple(_condition(previous.get(state.type), state, generation, now) for state in states)


def _condition(
    before: Condition | None, state: ConditionState, generation: int, now: str
) -> Condition:
    same = before is not None and before.status == state.status
    return Condition(
        **state._replace(message=state.message[:_MOST_CHARACTERS])._asdict(),
        observed_generation=generation,
        last_transition_time=before.last_transition_time if before and same else now,
    )
