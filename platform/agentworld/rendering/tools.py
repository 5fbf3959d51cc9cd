"""Renders an episode's tools as a part of the prompt, and reads tools of MCP."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from pydantic import JsonValue

from agentworld.records.base import canonical_json
from agentworld.records.tool import Tool


def action_space(tools: Iterable[Tool]) -> str:
    """One tool a line, in the form of MCP's `tools/list`; equal tools give equal text."""
    return "\n".join(_line(tool.model_dump_json()) for tool in tools)


@lru_cache(maxsize=1024)  # the episodes of a log have the same tools
def _line(tool_json: str) -> str:
    fields = tool_fields(Tool.model_validate_json(tool_json)).items()
    return (
        "{" + ",".join(f'"{key}":{canonical_json(value).decode()}' for key, value in fields) + "}"
    )


def tool_fields(tool: Tool) -> dict[str, JsonValue]:
    """A tool with MCP's names of fields; unset fields are left out."""
    fields: dict[str, JsonValue] = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": {"readOnlyHint": tool.effect == "read"} if tool.effect else None,
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}


def read_tool(fields: Mapping[str, JsonValue], name: str = "") -> Tool:
    """Reads a tool of MCP's `tools/list`, under another name if one is given.

    Raises ValidationError if it has no name, or no usable schema of its arguments.
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
    """The effect that MCP's annotations of a tool state; empty if they state none."""
    match annotations:
        case {"readOnlyHint": bool(is_read)}:
            return "read" if is_read else "write"
    return ""
