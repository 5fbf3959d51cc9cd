"""The strings in a JSON value."""

from collections.abc import Iterator

from pydantic import JsonValue


def strings_of(value: JsonValue) -> Iterator[str]:
    """All of them, in their order; keys are left out."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from strings_of(item)
        case dict():
            for item in value.values():
                yield from strings_of(item)
