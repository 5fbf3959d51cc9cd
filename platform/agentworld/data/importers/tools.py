"""Reads the tools that a record lists as available to the agent."""

from collections.abc import Sequence

from pydantic import JsonValue, ValidationError

from agentworld.data.importers.events import Event
from agentworld.records.tool import Tool
from agentworld.rendering.tools import effect_of


def tools_of(value: JsonValue) -> tuple[tuple[Tool, ...], Sequence[Event]]:
    """Tools in the forms of OpenAI, Anthropic and MCP; anything else is left out."""
    tools: dict[str, Tool] = {}
    events = []
    for number, definition in enumerate(value if isinstance(value, list) else []):
        try:
            tool = _tool(definition)
        except ValidationError:
            place = f"tools[{number}]"
            events.append(Event(place, "left out", reason="tool without a name or a valid schema"))
        else:
            tools.setdefault(tool.name, tool)
    return tuple(tools.values()), events


def _tool(value: JsonValue) -> Tool:
    fields = value if isinstance(value, dict) else {}
    function = fields.get("function", fields)
    function = function if isinstance(function, dict) else {}
    names = ("parameters", "input_schema", "inputSchema")
    schema = next((function[name] for name in names if function.get(name)), {"type": "object"})
    output = function.get("outputSchema")
    return Tool.model_validate(
        {
            "name": function.get("name"),
            "description": function.get("description") or "",
            "input_schema": schema,
            "output_schema": output if isinstance(output, dict) else None,
            "effect": effect_of(function.get("annotations")),
        }
    )
