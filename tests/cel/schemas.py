"""The nodes of the custom resources' definitions with constraints."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from agentworld_operator.resources.crd import crd
from agentworld_operator.resources.kinds import KINDS

Schema = dict[str, Any]


class Node(NamedTuple):
    """One value of a kind's objects: a field, `[]` for an item, `{}` for what any key has."""

    kind: str
    path: tuple[str, ...]
    schema: Schema

    @property
    def id(self) -> str:
        return f"{self.kind}-{'.'.join(self.path)}"


def nodes() -> list[Node]:
    """The nodes of all kinds, objects before their contents."""
    all_nodes = []
    for kind in KINDS:
        root = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        all_nodes += [Node(kind.kind, path, schema) for path, schema in _within(root, ())]
    return all_nodes


def _within(schema: Schema, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Schema]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from _within(child, (*path, name))
    for name, step in (("items", "[]"), ("additionalProperties", "{}")):
        if name in schema:
            yield from _within(schema[name], (*path, step))
