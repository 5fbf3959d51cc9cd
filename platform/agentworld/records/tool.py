"""The tools that an agent may call in an episode, in the form of MCP's `tools/list`."""

from collections import Counter
from functools import partial
from operator import is_
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, StringConstraints

from agentworld.records.base import FIRST_INEXACT, JsonObject, Record, Sparse

_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,128}$")]
"""MCP's rule for names (SEP-986)."""


def _with_exact_numbers(value: JsonValue) -> JsonValue:
    """Refuses integers that no double holds, because they have no canonical JSON."""
    match value:
        case dict():
            for item in value.values():
                _with_exact_numbers(item)
        case list():
            for item in value:
                _with_exact_numbers(item)
        case int() if abs(value) >= FIRST_INEXACT:
            raise ValueError(f"JSON does not keep {value:,} exactly; use a smaller number")
    return value


_Schema = Annotated[JsonObject, AfterValidator(_with_exact_numbers)]


def _of_an_object(schema: JsonObject) -> JsonObject:
    if schema.get("type") != "object":
        raise ValueError("a tool's arguments must be an object; set `type: object` in its schema")
    return schema


class Tool(Record):
    """One tool."""

    name: _Name
    description: str = ""
    input_schema: Annotated[_Schema, AfterValidator(_of_an_object)]
    """A JSON schema (2020-12) of its arguments; `domains.tools` defines the supported subset."""
    output_schema: Annotated[_Schema | None, Field(exclude_if=partial(is_, None))] = None
    """A JSON schema of its structured content, if the tool has any."""
    effect: Sparse[Literal["", "read", "write"]] = ""
    """The effect of a call by the tool's `readOnlyHint`; empty without one."""


def _distinct(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    for name, count in Counter(tool.name for tool in tools).items():
        if count > 1:
            raise ValueError(f"there are {count} tools of the name {name!r}; leave one")
    return tools


Tools = Annotated[tuple[Tool, ...], AfterValidator(_distinct)]
"""The tools of one episode; no two have the same name."""
