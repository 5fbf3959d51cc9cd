"""The fields of a live state, and how many of them an action changed."""

import json
from collections.abc import Mapping

CHANGE_TAGS = ("no field changed", "1 field changed", "2 or more fields changed")
"""Tags of turns, by the number of fields of the state that the action changed."""

Fields = Mapping[str, str]


def fields_of_objects(lines: str) -> Fields | None:
    """The fields of objects of JSON, one a line; the first field of an object is its name.

    `{"name":"kolu","price":3}` has the field `name kolu price` with the value `3`. Null for any
    other text.
    """
    fields: dict[str, str] = {}
    for line in lines.splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(record, dict) or not record:
            return None
        (key, name), *others = record.items()
        fields |= {f"{key} {name} {field}": json.dumps(value) for field, value in others}
    return fields


def count_changes(before: Fields | None, after: Fields | None) -> int | None:
    """How many fields were added, removed or have another value; null if a state is unknown."""
    if before is None or after is None:
        return None
    return sum(before.get(name) != after.get(name) for name in before.keys() | after.keys())


def change_tag(num_changed: int) -> str:
    """The tag of a turn whose action changed so many fields."""
    return CHANGE_TAGS[min(num_changed, len(CHANGE_TAGS) - 1)]
