"""The leaves of a JSON value, for listing a tree one line at a time."""

from collections.abc import Iterator

from pydantic import JsonValue


def json_leaves(value: JsonValue, name: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Each leaf with its path: `mask.echo`. An empty object is a leaf."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from json_leaves(inner, f"{name}.{key}" if name else key)
    else:
        yield name, value
