"""Calls of tools as a world reads them: one line of JSON each, in one form."""

import json
from collections.abc import Iterable

from agentworld.domains.base import ActionError, Call

_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def render_calls(calls: Iterable[Call]) -> str:
    """Raises ActionError for arguments that are no JSON."""
    return "\n".join(map(_render, calls))


def parse_calls(action: str) -> tuple[Call, ...]:
    """The calls that an action consists of; none where a line of it is no call."""
    if not action.startswith("{"):
        return ()
    try:
        return tuple(_parse(line) for line in action.split("\n"))
    except (ValueError, RecursionError):
        return ()


def _parse(line: str) -> Call:
    match json.loads(line):
        case {"name": str(name), "arguments": dict(arguments)}:
            return Call(name, arguments)
    raise ValueError("the line is no call")


def _render(call: Call) -> str:
    try:
        name, arguments = _encode(call.name), _encode(dict(call.arguments))
    except (ValueError, RecursionError) as error:
        raise ActionError(
            f"the arguments of {call.name} are no JSON: {error}; correct them"
        ) from error
    return f'{{"name":{name},"arguments":{arguments}}}'
