"""The strings in a JSON value."""

from collections.abc import Iterator

from pydantic import JsonValue


def strings_of(value: JsonValue) -> Iterator[str]:
    """All strings of a value in order, without the keys of objects."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from strings_of(item)
        case dict():
            for item in value.values():
                yield from strings_of(item)
