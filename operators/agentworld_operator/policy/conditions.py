"""Conditions: what is said now, with the moment at which it became so."""

from collections.abc import Iterable
from typing import NamedTuple

from agentworld_operator.resources.base import Condition, ConditionStatus


class Said(NamedTuple):
    """One thing, as it is now."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""


def conditions(
    before: Iterable[Condition], now_said: Iterable[Said], generation: int, now: str
) -> tuple[Condition, ...]:
    """All that is said now; what did not change keeps its time, and equal words stay equal."""
    known = {each.type: each for each in before}
    return tuple(_condition(known.get(said.type), said, generation, now) for said in now_said)


def _condition(before: Condition | None, said: Said, generation: int, now: str) -> Condition:
    same = before is not None and before.status == said.status
    return Condition(
        **said._asdict(),
        observed_generation=generation,
        last_transition_time=before.last_transition_time if before and same else now,
    )
