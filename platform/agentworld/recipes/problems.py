"""Converts pydantic's errors into sentences with line, field and problem."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import NamedTuple, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from agentworld.records.base import describe_problem, first_problem
from agentworld.records.fields import describe_fields, record_in

_MOST_PROBLEMS = 1_000
_SIMILAR = 0.6

Path = tuple[str | int, ...]


class Problem(NamedTuple):
    """A problem at one place of a file."""

    line: int | None
    """From 1; null if the place is not in the file."""
    field: str
    """With its sections, as `model.hidden_sise`."""
    message: str
    """The problem, with the value and the correction."""


def all_problems(kind: type[BaseModel], error: ValidationError, root: Node | None) -> list[Problem]:
    """All problems that pydantic found in a document."""
    if error.error_count() > _MOST_PROBLEMS:
        return [Problem(None, "the whole", first_problem(error))]
    return [_to_problem(kind, details, root) for details in error.errors(include_url=False)]


def repeated_keys(root: Node) -> list[Problem]:
    """Keys that occur twice in one mapping, of which YAML silently takes the last."""
    problems = []
    waiting: list[tuple[Path, Node]] = [((), root)]
    visited = set()
    while waiting:
        path, node = waiting.pop()
        if id(node) in visited:  # an alias may lead back, or many times to one node
            continue
        visited.add(id(node))
        lines: dict[str | int, int] = {}
        for key, line, value in _children(node):
            if key in lines:
                name = ".".join(map(str, (*path, key)))
                text = f"it is in line {lines[key]} already; keep one of the two"
                problems.append(Problem(line, name, text))
            lines[key] = line
            waiting.append(((*path, key), value))
    return problems


def _to_problem(kind: type[BaseModel], problem: ErrorDetails, root: Node | None) -> Problem:
    line, node = _find(root, problem["loc"]) if root else (None, None)
    return Problem(line, *_describe(kind, problem, node))


def _describe(kind: type[BaseModel], problem: ErrorDetails, node: Node | None) -> tuple[str, str]:
    message = problem["msg"].removeprefix("Value error, ").replace("Input", "it", 1)
    value = _as_written(problem["input"], node)
    field, description = describe_problem({**problem, "msg": message, "input": value})
    match problem["type"], problem["input"]:
        case "extra_forbidden", _:
            return field, f"there is no such field; {_suggestion(kind, problem['loc'])}"
        case "literal_error", value:
            return field, description + _nearest_value(value, problem)
        case "string_type", bool() | int() | float():
            return field, f"{description}; put it in quotes"
        case "value_error", dict():  # a whole section is too long to quote
            return field, message
    return field, description


def _as_written(value: object, node: Node | None) -> object:
    """A number or a boolean as in the file: `12e4`, which Python would write 120000.0."""
    if isinstance(value, bool | int | float) and isinstance(node, ScalarNode):
        return node.value
    return value


def _suggestion(kind: type[BaseModel], path: Path) -> str:
    record, name = record_in(kind, path[:-1]), str(path[-1])
    siblings = list(record.model_fields) if record else []
    if near := get_close_matches(name, siblings, 1, _SIMILAR):
        return f"did you mean {near[0]}?"
    fields = [field.name for field in describe_fields(kind) if field.name.endswith(f".{name}")]
    if fields:
        return f"did you mean {' or '.join(fields[:3])}?"
    return "leave it out" + (f", or write one of: {', '.join(siblings)}" if siblings else "")


def _nearest_value(value: object, problem: ErrorDetails) -> str:
    allowed_values = re.findall(r"'([^']*)'", str(problem.get("ctx", {}).get("expected", "")))
    near = get_close_matches(str(value), allowed_values, 1, _SIMILAR)
    return f"; did you mean {near[0]}?" if near else ""


def _find(root: Node, path: Path) -> tuple[int, Node | None]:
    """The line of the last part of a path that the document has, and the node of the whole path;
    None if the document does not have the whole path.
    """
    node, line = root, cast("int", root.start_mark.line) + 1
    for part in path:
        inside: Mapping[str | int, tuple[int, Node]] = {
            key: (place, value) for key, place, value in _children(node)
        }
        if part not in inside:
            return line, None
        line, node = inside[part]
    return line, node


def _children(node: Node) -> list[tuple[str | int, int, Node]]:
    if isinstance(node, MappingNode):
        return [
            (key.value, key.start_mark.line + 1, value)
            for key, value in node.value
            if isinstance(key, ScalarNode)
        ]
    if isinstance(node, SequenceNode):
        return [(i, child.start_mark.line + 1, child) for i, child in enumerate(node.value)]
    return []
