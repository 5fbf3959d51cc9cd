"""Values at a path of a JSON value, such as `state.history` or `steps.0.action`.

In a path of many values `*` stands for every key of an object, or every place in a list.
"""

from collections.abc import Iterable, Iterator, Sequence

from pydantic import JsonValue

from agentworld.errors import InputError

EVERY = "*"


def value_at(value: JsonValue, path: str) -> JsonValue:
    """The value at a path; the empty path is the whole. Raises InputError if it is missing."""
    if isinstance(value, dict) and path in value:  # a column's name may have a dot
        return value[path]
    return value_of(value, path.split(".") if path else ())


def value_of(value: JsonValue, keys: Sequence[str]) -> JsonValue:
    """The value under nested keys; raises InputError if it is missing."""
    for key in keys:
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise InputError(f"there is no {'.'.join(keys)}; name another path")
    return value


def keys_at(value: JsonValue, path: str) -> Iterator[tuple[str, ...]]:
    """The keys of every value at a path of many.

    A `*` stays in the path if there is neither an object nor a list in its place.
    """
    head, star, rest = _at_first_star(path)
    if not star:
        yield head
        return
    try:
        whole = value_of(value, head)
    except InputError:
        whole = None
    if not isinstance(whole, dict | list):
        yield (*head, star, *rest.split("."))
        return
    for key in whole if isinstance(whole, dict) else map(str, range(len(whole))):
        for keys in keys_at(value_of(whole, [key]), rest) if rest else [()]:
            yield (*head, key, *keys)


def _at_first_star(path: str) -> tuple[tuple[str, ...], str, str]:
    keys = tuple(path.split(".")) if path else ()
    if EVERY not in keys:
        return keys, "", ""
    number = keys.index(EVERY)
    return keys[:number], EVERY, ".".join(keys[number + 1 :])


def fill(path: str, names: Sequence[str]) -> tuple[str, ...]:
    """The keys of a path whose first `*` are these names."""
    rest = iter(names)
    keys = path.split(".") if path else ()
    return tuple(next(rest, key) if key == EVERY else key for key in keys)


def names_in(path: str, keys: Sequence[str]) -> tuple[str, ...]:
    """The keys that stand in place of each `*` of a path."""
    parts = zip(path.split("."), keys, strict=False)
    return tuple(key for part, key in parts if part == EVERY)


def text_at(value: JsonValue, path: str) -> str:
    """The text or number at a path; raises InputError if there is none."""
    match value_at(value, path):
        case str(text):
            return text
        case bool() | None | dict() | list() as other:
            raise InputError(f"{path} is a {type(other).__name__} and no text; name another path")
        case number:
            return str(number)


def first_text(value: JsonValue, paths: Iterable[str]) -> str:
    """The first text or number at one of these paths; empty if there is none."""
    for path in paths:
        try:
            return text_at(value, path)
        except InputError:
            continue
    return ""


def list_in(
    value: JsonValue, path: str, names: Sequence[str], noun: str
) -> tuple[str, list[JsonValue]]:
    """The list at a path, or under the first of some names that has a list, with its path.

    A value that is a list is returned itself. Raises InputError if there is no list; `noun` is the
    option for the path, such as `messages`.
    """
    fields = value if isinstance(value, dict) else {}
    path = path or next((name for name in names if isinstance(fields.get(name), list)), "")
    if not path and not isinstance(value, list):
        raise InputError(f"it has no list of {noun}; name its path with --set {noun}=PATH")
    values = value_at(value, path)
    if not isinstance(values, list):
        raise InputError(f"{path}: it is a {type(values).__name__} and no list of {noun}")
    return path or noun, values


def task_of(value: JsonValue, path: str, paths: Iterable[str], name: str) -> str:
    """The task's id, which all trials of a task share.

    It is at `path`; without a path at the first of `paths`, or in a file's `name` before `.traj`.
    """
    if path:
        return text_at(value, path)
    stem, mark, _ = name.rpartition("/")[2].partition(".traj")
    return first_text(value, paths) or (stem if mark else "")
