"""Checks values against JSON schemas that users wrote.

A schema cannot make this process load anything, because references must stay inside the schema. It
cannot delay other requests, because each check has a time limit.
"""

import json
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import regex
from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.validators import extend
from pydantic import JsonValue
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from agentworld.errors import InputError

Schema = Mapping[str, JsonValue]

_SECONDS = 0.25  # processor time, so a busy machine and an idle one give the same result
_MOST_REFERRED = 2**15
_ROOT_ONLY = "$schema", "$id"
_UNKNOWN = "$dynamicRef", "patternProperties", "unevaluatedItems", "unevaluatedProperties"
_MOST_NESTED = 100
"""Keywords inside each other. `rpds` panics where it meets Python's recursion limit."""


class _Limits:
    """The deadline of one comparison, and how deep its keywords nest at the moment."""

    def __init__(self) -> None:
        self.until = time.thread_time() + _SECONDS
        self.num_nested = 0


_limits: ContextVar[_Limits] = ContextVar("limits")


def check_schema(schema: Schema) -> None:
    """Raises InputError for an invalid schema (2020-12), or one with an unsupported keyword."""
    try:
        _check(_without_root_keys(schema))
    except SchemaError as error:
        raise InputError(f"{error.message:.200}") from error
    except (Unresolvable, regex.error, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{error!s:.200}") from error


def compare(value: JsonValue, schema: Schema) -> None:
    """Raises InputError if a value does not fit a schema that `check_schema` accepted."""
    limits = _limits.set(_Limits())
    try:
        wrong = next(
            _Comparison(_without_root_keys(schema), registry=Registry()).iter_errors(value), None
        )
    except (TimeoutError, RecursionError, OverflowError) as error:
        raise InputError(
            f"they are too deep, too large or take more than {_SECONDS} s to compare"
        ) from error
    finally:
        _limits.reset(limits)
    if wrong:
        raise InputError(f"{wrong.json_path}: {wrong.message:.200}")


def _without_root_keys(schema: Schema) -> dict[str, JsonValue]:
    """The schema without the keywords for its dialect and its address."""
    return {key: value for key, value in schema.items() if key not in _ROOT_ONLY}


def _check(schema: dict[str, JsonValue]) -> None:
    """Checks every part as a schema, because a reference can lead to any part."""
    resolver = Registry[JsonValue]().resolver_with_root(DRAFT202012.create_resource(schema))
    checked, budget = {"#"}, _MOST_REFERRED
    Draft202012Validator.check_schema(schema, format_checker=None)
    for part in _objects(schema):
        for key, value in part.items():
            if key in _UNKNOWN or (key in _ROOT_ONLY and isinstance(value, str)):
                raise ValueError(f"{key} is not supported in it")
            if key == "pattern" and isinstance(value, str):
                regex.compile(value)
            if key == "$ref" and isinstance(value, str) and value not in checked:
                checked.add(value)
                target = resolver.lookup(value).contents
                budget -= len(json.dumps(target))
                if budget < 0:  # each target is checked, also one inside another
                    raise ValueError(f"its references lead to more than {_MOST_REFERRED} bytes")
                Draft202012Validator.check_schema(target, format_checker=None)


def _objects(value: JsonValue) -> Iterator[dict[str, JsonValue]]:
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            yield part
            parts += part.values()
        elif isinstance(part, list):
            parts += part


_Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


def _within_limits(keyword: _Keyword) -> _Keyword:
    def validate(
        validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        limits = _limits.get()
        if time.thread_time() > limits.until:
            raise TimeoutError
        if limits.num_nested == _MOST_NESTED:
            raise RecursionError
        limits.num_nested += 1
        try:
            yield from keyword(validator, value, instance, schema) or ()
        finally:
            limits.num_nested -= 1

    return validate


def _pattern(_: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str):
        seconds = max(_limits.get().until - time.thread_time(), 0.001)
        if not regex.search(pattern, instance, timeout=seconds, concurrent=True):
            yield ValidationError(f"{instance!r:.80} does not match {pattern!r:.80}")


def _unique_items(
    _: Any, is_unique: bool, instance: Any, _schema: Any
) -> Iterator[ValidationError]:
    """In linear time; the package compares each pair of elements."""
    if is_unique and isinstance(instance, list) and len(set(map(_key, instance))) < len(instance):
        yield ValidationError(f"{instance!r:.80} has equal elements")


def _key(value: JsonValue) -> Hashable:
    """A key that is equal for values that JSON schema calls equal: 1 equals 1.0, but not true."""
    match value:
        case bool():
            return "bool", value
        case list():
            return tuple(map(_key, value))
        case dict():
            return frozenset((key, _key(item)) for key, item in value.items())
    return value


_OWN: dict[str, _Keyword] = {"pattern": _pattern, "uniqueItems": _unique_items}
_Comparison = extend(
    Draft202012Validator,
    {
        name: _within_limits(validator)
        for name, validator in {**Draft202012Validator.VALIDATORS, **_OWN}.items()
    },
)
