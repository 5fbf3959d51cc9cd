"""Builds conditions with the times of their transitions."""

from collections.abc import Iterable
from typing import NamedTuple

from agentworld.cluster.records.base import Condition, ConditionStatus

_MOST_CHARACTERS = 32_768
"""The longest message; it may quote another system's response."""


class ConditionState(NamedTuple):
    """The current state of one condition."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""


def conditions(
    before: Iterable[Condition], states: Iterable[ConditionState], generation: int, now: str
) -> tuple[Condition, ...]:
    """The current conditions; an unchanged one keeps its time and its message."""
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
