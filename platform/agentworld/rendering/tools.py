"""From an episode's tools to the part of the prompt that lists them."""

from collections.abc import Iterable
from functools import lru_cache

from agentworld.records.base import canonical_json
from agentworld.records.tool import Tool


def action_space(tools: Iterable[Tool]) -> str:
    """One tool a line, as MCP's `tools/list` tells it; the same however its JSON was written."""
    return "\n".join(_line(tool.model_dump_json()) for tool in tools)


@lru_cache(maxsize=1024)  # the episodes of a log have the same tools
def _line(tool_json: str) -> str:
    tool = Tool.model_validate_json(tool_json)
    values = {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
    fields = (f'"{key}":{canonical_json(value).decode()}' for key, value in values.items() if value)
    return "{" + ",".join(fields) + "}"
