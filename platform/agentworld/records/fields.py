"""Descriptions of a record's fields: types, bounds, defaults and docstrings."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator, BaseModel, JsonValue, SecretStr
from pydantic.fields import FieldInfo

from agentworld.records.base import Record, read_canonical

_TYPES: Mapping[object, str] = {
    bool: "yes or no",
    int: "whole number",
    float: "number",
    str: "text",
    Decimal: "number",
    Path: "path",
    SecretStr: "text",
}
_MAPPINGS = (dict, Mapping)
_BOUNDS = ((Gt, "gt", ">"), (Ge, "ge", ">="), (Lt, "lt", "<"), (Le, "le", "<="))


class FieldDescription(Record):
    """One field of a configuration file."""

    name: str
    """The dotted path, such as `cpt.learning_rate`; `gate[]` is an entry of a list, and
    `corpora.NAME` one of a mapping.
    """
    type: str
    required: bool
    default: Annotated[JsonValue, AfterValidator(read_canonical)] = None
    unit: str
    """Empty if the name has no unit."""
    meaning: str


def describe_fields(kind: type[BaseModel]) -> list[FieldDescription]:
    """Every field that holds a value, in the order of the declaration."""
    return list(_describe(kind, "", kind.model_construct()))


def field_words(record: type[BaseModel]) -> dict[str, str]:
    """The docstrings of a record's own fields, each on one line."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(record))).body[0]
    assert isinstance(tree, ast.ClassDef)
    words = {}
    for field, after in zip(tree.body, tree.body[1:], strict=False):
        match field, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as text)),
            ):
                words[name] = " ".join(text.split())
    return words


def record_in(kind: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel] | None:
    """The record at a path such as `("gate", 0)`; None if there is none."""
    annotation: object = kind
    for part in path:
        if isinstance(part, str):
            annotation = _annotation_in(annotation, part)
    return _record_of(annotation)


def _annotation_in(annotation: object, name: str) -> object:
    """The type of a record's field, or of a mapping's values."""
    if record := _record_of(annotation):
        field = record.model_fields.get(name)
        return field.annotation if field else None
    return _value_type(annotation)


def _value_type(annotation: object) -> object:
    arguments = get_args(annotation)
    if get_origin(annotation) in _MAPPINGS:
        return arguments[1]
    return next((value_type for value_type in map(_value_type, arguments) if value_type), None)


def type_words(field: FieldInfo) -> str:
    """The valid values of a field, with its bounds, such as `whole number, > 0`."""
    return _type_words(field.annotation) + _bounds(field)


def _describe(
    kind: type[BaseModel], prefix: str, defaults: BaseModel | None
) -> Iterator[FieldDescription]:
    words = all_field_words(kind)
    for name, field in kind.model_fields.items():
        path = f"{prefix}{name}"
        default = getattr(defaults, name, None)
        section = _record_of(field.annotation)
        if section and get_origin(field.annotation) is not tuple:
            if default is None and not field.is_required():
                meaning = words.get(name, "")
                yield FieldDescription(
                    name=path, type="section or null", required=False, unit="", meaning=meaning
                )
            nested_record = default if isinstance(default, BaseModel) else section.model_construct()
            yield from _describe(section, f"{path}.", nested_record)
            continue
        yield FieldDescription(
            name=path,
            type=type_words(field),
            required=field.is_required() and default is None,
            default=_to_json(default),
            unit=_unit(name),
            meaning=words.get(name, ""),
        )
        if section:
            yield from _describe(section, f"{path}[].", None)
        elif entry := _record_of(_value_type(field.annotation)):
            yield from _describe(entry, f"{path}.NAME.", None)


def all_field_words(kind: type[BaseModel]) -> dict[str, str]:
    """The docstrings of all of a record's fields, including those of its bases."""
    bases = [base for base in reversed(kind.__mro__) if issubclass(base, BaseModel)]
    own_bases = [base for base in bases if base.__module__.startswith("agentworld")]
    return {name: text for base in own_bases for name, text in field_words(base).items()}


def _record_of(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in _MAPPINGS:
        return None
    records = map(_record_of, get_args(annotation))
    return next((record for record in records if record), None)


def _type_words(annotation: object) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_words(arguments[0])
    if origin in (Union, UnionType):
        words = [_type_words(argument) for argument in arguments if argument is not NoneType]
        return " or ".join(words + ["null"] * (NoneType in arguments))
    if origin is Literal:
        return " or ".join(f"`{argument}`" for argument in arguments)
    if origin is tuple:
        if Ellipsis not in arguments:
            return f"list of {len(arguments)}: {', '.join(map(_type_words, arguments))}"
        return f"list of {_type_words(arguments[0])}"
    if origin in _MAPPINGS:
        return f"mapping of text to {_type_words(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "entries"
    return _TYPES.get(annotation, "any value")


def _bounds(field: FieldInfo) -> str:
    metadata: list[Any] = [*field.metadata]
    for argument in get_args(field.annotation):
        metadata += getattr(argument, "__metadata__", ())
    bounds = [
        f"{sign} {getattr(constraint, attribute):g}"
        for kind, attribute, sign in _BOUNDS
        for constraint in metadata
        if isinstance(constraint, kind)
    ]
    return f", {', '.join(bounds)}" if bounds else ""


def _to_json(value: object) -> JsonValue:
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return cast("JsonValue", value)


def _unit(name: str) -> str:
    if name.startswith("num_") and name.endswith("s"):
        return name.removeprefix("num_").replace("_", " ")
    units = {"seconds": "seconds", "tokens": "tokens", "share": "share of 1"}
    return next((unit for word, unit in units.items() if word in name.split("_")), "")
