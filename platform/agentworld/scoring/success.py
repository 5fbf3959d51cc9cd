"""How an episode ends: the rule of its domain, and the limit of its turns.

It reads actions and observations and nothing else.
"""

from typing import NamedTuple

from agentworld.domains.base import Domain
from agentworld.records.task import Task


class Outcome(NamedTuple):
    """What a step means for its episode."""

    reward: float | None
    """1 or 0 when a task is over; null without a task, and while it is open."""
    done: bool
    truncated: bool
    """Done because of the turn limit."""


def outcome(
    domain: Domain, task: Task | None, turn_limit: int, step: int, action: str, observation: str
) -> Outcome:
    """What the step with this number (1 for the first) means.

    A task that is open at its last turn has failed and is rewarded with 0: the limit is a
    part of the task, and so the 0 is the agent's own and no failure of ours.
    """
    verdict = domain.outcome(task, action, observation) if task else None
    if verdict is not None:
        return Outcome(float(verdict), done=True, truncated=False)
    if step >= turn_limit:
        return Outcome(0.0 if task else None, done=True, truncated=True)
    return Outcome(None, done=False, truncated=False)
