"""The outcome of a step: by the rule of its domain, and by the turn limit.

It reads actions and observations only.
"""

from typing import NamedTuple

from agentworld.domains.base import Domain
from agentworld.records.task import Task


class Outcome(NamedTuple):
    """The outcome of a step."""

    reward: float | None
    """1 or 0 when a task is over; null without a task, and while it is open."""
    done: bool
    truncated: bool
    """Done because of the turn limit."""


def outcome(
    domain: Domain, task: Task | None, turn_limit: int, step: int, action: str, observation: str
) -> Outcome:
    """The outcome of the step with this number (1 for the first).

    A task that is open at its last turn has failed and gets reward 0: the limit is part of the
    task, so the failure is the agent's.
    """
    verdict = domain.outcome(task, action, observation) if task else None
    if verdict is not None:
        return Outcome(float(verdict), done=True, truncated=False)
    if step >= turn_limit:
        return Outcome(0.0 if task else None, done=True, truncated=True)
    return Outcome(None, done=False, truncated=False)
