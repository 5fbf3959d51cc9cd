"""Finds the action that closes a task, by the closing pattern of its success rule."""

import regex

from agentworld.errors import InputError
from agentworld.records.task import SuccessRule

# Users write the patterns; a slow one must not delay other requests.
_MATCH_SECONDS = 0.1


def closes(rule: SuccessRule, action: str) -> bool:
    """Whether an action closes the task; raises InputError for a pattern that takes too long."""
    try:
        return regex.fullmatch(rule.closing, action, timeout=_MATCH_SECONDS) is not None
    except TimeoutError as error:
        raise InputError(
            f"the closing pattern {rule.closing!r} takes more than {_MATCH_SECONDS} s for one"
            " action; write one that does not backtrack"
        ) from error


def check_rule(rule: SuccessRule) -> None:
    """Raises InputError if the closing pattern is not a regular expression."""
    try:
        regex.compile(rule.closing)
    except regex.error as error:
        raise InputError(
            f"the closing pattern {rule.closing!r} is no regular expression: {error}"
        ) from error
