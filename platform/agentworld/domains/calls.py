"""Calls of tools in the form that a world reads: one line of canonical JSON for each call."""

import json
from collections.abc import Iterable

from agentworld.domains.base import ActionError, Call
from agentworld.domains.json_text import encode_strict_json


def render_calls(calls: Iterable[Call]) -> str:
    """One line for each call; raises ActionError if arguments cannot be written as JSON."""
    return "\n".join(map(_render, calls))


def parse_calls(action: str) -> tuple[Call, ...]:
    """The calls that an action consists of; none if any of its lines is not a call."""
    if not action.startswith("{"):
        return ()
    try:
        return tuple(parse_call(line) for line in action.split("\n"))
    except (ValueError, RecursionError):
        return ()


def parse_call(text: str) -> Call:
    """Reads a call from JSON; raises ValueError for other text, RecursionError for deep nesting."""
    match json.loads(text):
        case {"name": str(name), "arguments": dict(arguments)}:
            return Call(name, arguments)
    raise ValueError("the text is no call")


def _render(call: Call) -> str:
    try:
        name = encode_strict_json(call.name)
        arguments = encode_strict_json(dict(call.arguments))
    except (ValueError, RecursionError) as error:
        raise ActionError(
            f"the arguments of {call.name} are no JSON: {error}; correct them"
        ) from error
    return f'{{"name":{name},"arguments":{arguments}}}'
