"""The tool that an action uses, and the words of its arguments, in any domain."""

import json
import re

from agentworld.domains.calls import parse_calls

WORD = re.compile(r"[^\s|<>&;:/]+")
"""A word of an action or an observation."""

_CALLED = re.compile(r"\s*([A-Za-z_][\w.-]*)[(\[]")
_ARGUMENT = re.compile(r"[\w.@#$-]+")


def tool_of(action: str) -> str:
    """The names of the called tools; otherwise the name before a bracket, or the first word."""
    calls = parse_calls(action)
    if calls:
        return " ".join(call.name for call in calls)
    match = _CALLED.match(action)
    if match:
        return match[1]
    word = WORD.search(action)
    return word[0] if word else ""


def words_of(action: str) -> list[str]:
    """The tool and the words of its arguments."""
    calls = parse_calls(action)
    if calls:
        arguments = json.dumps([[*call.arguments.values()] for call in calls], ensure_ascii=False)
        return [tool_of(action), *_ARGUMENT.findall(arguments)]
    match = _CALLED.match(action)
    if match:
        return [match[1], *_ARGUMENT.findall(action[match.end() :])]
    return WORD.findall(action)
