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


def _render(call: Call) -> str:
    try:
        name, arguments = _encode(call.name), _encode(dict(call.arguments))
    except (ValueError, RecursionError) as error:
        raise ActionError(
            f"the arguments of {call.name} are no JSON: {error}; correct them"
        ) from error
    return f'{{"name":{name},"arguments":{arguments}}}'
