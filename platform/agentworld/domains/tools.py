"""An episode's tools: which there are, and the action that a call of one is."""

import json
from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from agentworld.domains.terminal.prompts import DOMAIN as TERMINAL
from agentworld.domains.tool_schema import check_schema, compare
from agentworld.errors import InputError
from agentworld.records.base import canonical_json
from agentworld.records.episode import EpisodeOpening
from agentworld.records.tool import Tool

BASH = Tool(
    name="bash",
    description="Runs a command in the terminal and shows what it prints.",
    input_schema={
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
        "additionalProperties": False,
    },
)
"""What a terminal has; its actions are the commands themselves."""

_MOST_BYTES = 2**18
_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def tools_of(domains: Sequence[str], opening: EpisodeOpening) -> tuple[Tool, ...]:
    """What an agent may call: the episode's own tools, else what the simulator's domain has."""
    if opening.tools:
        return opening.tools
    return (BASH,) if tuple(domains) == (TERMINAL,) else ()


def action_of(tools: Iterable[Tool], name: str, arguments: Mapping[str, JsonValue]) -> str:
    """A call as the world reads it: a command as it is, any other call as JSON in one form.

    Raises InputError for an unknown tool, and for arguments that are not as its schema says.
    """
    by_name = {tool.name: tool for tool in tools}
    if name not in by_name:
        names = ", ".join(by_name) or "none"
        raise InputError(f"there is no tool {name[:80]!r} in this episode; there is {names:.200}")
    tool = by_name[name]
    try:
        compare(dict(arguments), tool.input_schema)
    except InputError as error:
        raise InputError(
            f"the arguments of {name} do not fit its schema: {error}; call it otherwise"
        ) from error
    if tool == BASH:
        return str(arguments["command"])
    try:
        return f'{{"name":{_encode(name)},"arguments":{_encode(arguments)}}}'
    except (ValueError, RecursionError) as error:
        raise InputError(f"the arguments of {name} are no JSON: {error}; mend them") from error


def check_tools(tools: Iterable[Tool]) -> None:
    """Raises InputError naming the first tool whose calls could not be compared with its schema."""
    num_bytes = 0
    for tool in tools:
        num_bytes += len(canonical_json(tool.input_schema))
        if num_bytes > _MOST_BYTES:
            raise InputError(f"the tools' schemas have more than {_MOST_BYTES} bytes; shorten them")
        try:
            check_schema(tool.input_schema)
        except InputError as error:
            raise InputError(
                f"the input schema of tool {tool.name} cannot be used: {error}; change it"
            ) from error
