"""Calls of tools as a world reads them: one line of JSON each, in one form."""

import json
from collections.abc import Iterable

from agentworld.domains.base import ActionError, Call
from agentworld.domains.json_text import encode_strict_json


def render_calls(calls: Iterable[Call]) -> str:
    """Raises ActionError for arguments that are no JSON."""
    return "\n".join(map(_render, calls))


def parse_calls(action: str) -> tuple[Call, ...]:
    """The calls that an action consists of; none where a line of it is no call."""
    if not action.startswith("{"):
        return ()
    try:
        return tuple(parse_call(line) for line in action.split("\n"))
    except (ValueError, RecursionError):
        return ()


def parse_call(text: str) -> Call:
    """A call in any form of JSON; raises ValueError for another text, RecursionError for depth."""
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
