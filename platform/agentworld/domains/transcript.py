"""Finds the action that closes a task, by the closing pattern of its success rule."""

import regex

from agentworld.errors import InputError
from agentworld.records.task import SuccessRule

# Users write the patterns; a slow or long one must not delay other requests.
_MATCH_SECONDS = 0.1
_MOST_CHARACTERS = 4096


def closes(rule: SuccessRule, action: str) -> bool:
    """Whether an action closes the task; raises InputError for a pattern that is not a regular
    expression or takes too long.
    """
    pattern = _compile(rule)
    try:
        return pattern.fullmatch(action, timeout=_MATCH_SECONDS) is not None
    except TimeoutError as error:
        raise InputError(
            f"the closing pattern {rule.closing!r} takes more than {_MATCH_SECONDS} s for one"
            " action; write one that does not backtrack"
        ) from error


def check_rule(rule: SuccessRule) -> None:
    """Raises InputError if the closing pattern is too long or not a regular expression."""
    if len(rule.closing) > _MOST_CHARACTERS:
        raise InputError(
            f"the closing pattern {rule.closing[:40]!r}... has {len(rule.closing)} characters;"
            f" shorten it to at most {_MOST_CHARACTERS}"
        )
    _compile(rule)


def _compile(rule: SuccessRule) -> regex.Pattern[str]:
    try:
        return regex.compile(rule.closing)
    # ValueError for flags that exclude each other, RecursionError for deep parentheses
    except (regex.error, ValueError, RecursionError) as error:
        raise InputError(
            f"the closing pattern {rule.closing!r} is no regular expression: {error}"
        ) from error
