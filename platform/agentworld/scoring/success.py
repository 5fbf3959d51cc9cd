"""How an episode ends: the same rule rewards a simulated episode and reports a live one.

It reads actions and observations and nothing else.
"""

from typing import NamedTuple

import regex

from agentworld.errors import InputError
from agentworld.records.task import SuccessRule, Task

# A pattern is somebody's; none may hold up whoever else is answered.
_MATCH_SECONDS = 0.1


class Outcome(NamedTuple):
    """What a step means for its episode."""

    reward: float | None
    """1 or 0 when a task is over; null without a task, and while it is open."""
    done: bool
    truncated: bool
    """Done because of the turn limit."""


def judge(rule: SuccessRule, action: str, observation: str) -> bool | None:
    """Whether a step closes its episode rightly or wrongly; null where it does not close it."""
    if not _closes(rule, action):
        return None
    output, _, _prompt_line = observation.rpartition("\n")
    return output == rule.output


def _closes(rule: SuccessRule, action: str) -> bool:
    try:
        return regex.fullmatch(rule.closing, action, timeout=_MATCH_SECONDS) is not None
    except TimeoutError as error:
        raise InputError(
            f"the closing pattern {rule.closing!r} takes more than {_MATCH_SECONDS} s for one"
            " action; write one that does not backtrack"
        ) from error


def outcome(
    task: Task | None, turn_limit: int, step: int, action: str, observation: str
) -> Outcome:
    """What the step with this number (1 for the first) means.

    A task that is open at its last turn has failed and is rewarded with 0: the limit is a
    part of the task, and so the 0 is the agent's own and no failure of ours.
    """
    verdict = judge(task.success, action, observation) if task else None
    if verdict is not None:
        return Outcome(float(verdict), done=True, truncated=False)
    if step >= turn_limit:
        return Outcome(0.0 if task else None, done=True, truncated=True)
    return Outcome(None, done=False, truncated=False)


def check_rule(rule: SuccessRule) -> None:
    """Raises InputError where the closing pattern is no regular expression."""
    try:
        regex.compile(rule.closing)
    except regex.error as error:
        raise InputError(
            f"the closing pattern {rule.closing!r} is no regular expression: {error}"
        ) from error
