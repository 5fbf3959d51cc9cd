"""From an episode's tools to the part of the prompt that lists them, and from MCP to tools."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from pydantic import JsonValue

from agentworld.records.base import canonical_json
from agentworld.records.tool import Tool


def action_space(tools: Iterable[Tool]) -> str:
    """One tool a line, as MCP's `tools/list` tells it; the same however its JSON was written."""
    return "\n".join(_line(tool.model_dump_json()) for tool in tools)


@lru_cache(maxsize=1024)  # the episodes of a log have the same tools
def _line(tool_json: str) -> str:
    fields = tool_fields(Tool.model_validate_json(tool_json)).items()
    return (
        "{" + ",".join(f'"{key}":{canonical_json(value).decode()}' for key, value in fields) + "}"
    )


def tool_fields(tool: Tool) -> dict[str, JsonValue]:
    """A tool as MCP names its fields; what it does not say is left out."""
    fields: dict[str, JsonValue] = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": {"readOnlyHint": tool.effect == "read"} if tool.effect else None,
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}


def read_tool(fields: Mapping[str, JsonValue], name: str = "") -> Tool:
    """A tool as MCP's `tools/list` has it, under another name if one is given.

    Raises ValidationError where it has no name or schema of its arguments that we can use.
    """
    return Tool.model_validate(
        {
            "name": name or fields.get("name"),
            "description": fields.get("description") or "",
            "input_schema": fields.get("inputSchema"),
            "output_schema": fields.get("outputSchema"),
            "effect": effect_of(fields.get("annotations")),
        }
    )


def effect_of(annotations: JsonValue) -> str:
    """What MCP's annotations of a tool say that a call does; empty where they do not say it."""
    match annotations:
        case {"readOnlyHint": bool(is_read)}:
            return "read" if is_read else "write"
    return ""
