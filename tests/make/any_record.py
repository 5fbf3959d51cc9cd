"""Random records of a type, generated from its JSON schema."""

import re
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from agentworld.records.base import Record

Schema = Mapping[str, Any]

_FLOATS = st.floats() | st.sampled_from([-6.501161575064481e16, 2.0**53, 1e21, -0.0])
_INTEGERS = st.integers() | st.sampled_from([2**53 - 1, 2**53, 2**53 + 1, 10**17])
_NUMBERS = _FLOATS | _INTEGERS
_DIGESTS = [f"sha256:{digit * 64}" for digit in "0f"]
_TEXTS = st.text(max_size=8)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(_TEXTS, values, max_size=3),
    max_leaves=6,
)


def fields_of(kind: type[Record]) -> SearchStrategy[Any]:
    """Valid fields of a record; a validator of the type may still refuse them."""
    schema = kind.model_json_schema()
    return _values(schema, schema.get("$defs", {}), 3)


def _values(schema: Schema, definitions: Schema, depth: int) -> SearchStrategy[Any]:
    if "$ref" in schema:
        return _values(definitions[schema["$ref"].rpartition("/")[2]], definitions, depth)
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return st.one_of([_values(item, definitions, depth) for item in alternatives])
    match schema.get("type"):
        case "array":
            return st.lists(
                _values(schema.get("items", {}), definitions, depth - 1),
                min_size=schema.get("minItems", 0),
                max_size=max(schema.get("minItems", 0), min(depth, 2)),
            )
        case "object":
            return _object(schema, definitions, depth)
    return _plain(schema)


def _plain(schema: Schema) -> SearchStrategy[Any]:
    minimum = schema.get("minimum", 0)
    kinds = {
        "integer": _INTEGERS | st.integers(minimum, minimum + 99),
        "number": _NUMBERS | st.floats(0.0, 1.0),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    kind = schema.get("type", "")
    return _text(schema) if kind == "string" else kinds.get(kind, _ANYTHING)


def _object(schema: Schema, definitions: Schema, depth: int) -> SearchStrategy[Any]:
    if "properties" not in schema:
        additional = schema.get("additionalProperties", {})
        values = _ANYTHING if additional is True else _values(additional, definitions, depth - 1)
        names = _text(schema.get("propertyNames", {}))
        floor = schema.get("minProperties", 0)
        return st.dictionaries(names, values, min_size=floor, max_size=max(floor, min(depth, 2)))
    by_name = {
        name: _values(subschema, definitions, depth - 1)
        for name, subschema in schema["properties"].items()
    }
    required = set(schema.get("required", ()))
    optional = {name: subschema for name, subschema in by_name.items() if name not in required}
    return st.fixed_dictionaries({name: by_name[name] for name in required}, optional=optional)


def _text(schema: Schema) -> SearchStrategy[str]:
    if schema.get("format") == "date-time":
        return st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
    minimum = schema.get("minLength", 0)
    match schema.get("pattern"):
        case "^sha256:[0-9a-f]{64}$":
            return st.sampled_from(_DIGESTS)
        case r"^[^\x00]*$":
            return st.text(st.characters(exclude_characters="\0"), min_size=minimum, max_size=8)
        case str(pattern):
            return st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True)
    return st.text(min_size=minimum, max_size=minimum + 8)
