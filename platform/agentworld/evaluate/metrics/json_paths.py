"""A JSON observation as values by path."""

import json
from typing import NamedTuple, NoReturn

from pydantic import JsonValue

Path = tuple[str | int, ...]
"""Keys of objects and indexes of lists, from the root."""


class Structure(NamedTuple):
    """An object or a list."""

    is_list: bool
    paths: frozenset[Path]
    """The paths of everything below the root."""
    leaves: dict[Path, JsonValue]
    """By path, all values except objects and lists with elements."""


def structure_of(observation: str) -> Structure | None:
    """Null for text that is not JSON, and for a single number, text or constant."""
    try:
        root = json.loads(observation, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(root, dict | list):
        return None
    paths: set[Path] = set()
    leaves: dict[Path, JsonValue] = {}
    waiting: list[tuple[Path, JsonValue]] = [((), root)]
    while waiting:
        path, value = waiting.pop()
        below = _below(value)
        if not below and path:
            leaves[path] = value
        for key, part in below:
            paths.add((*path, key))
            waiting.append(((*path, key), part))
    return Structure(isinstance(root, list), frozenset(paths), leaves)


def is_same(one: JsonValue, other: JsonValue) -> bool:
    """Equal as JSON has it: true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _below(value: JsonValue) -> list[tuple[str | int, JsonValue]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _refuse(constant: str) -> NoReturn:
    """NaN is not JSON, and is not equal to itself."""
    raise ValueError(f"{constant} is not JSON")
