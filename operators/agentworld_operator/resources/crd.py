"""Generates CustomResourceDefinitions from records, so that both always agree.

A CRD's schema is an older draft of JSON schema, and structural: no references, and value
constraints only outside of alternatives.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import BaseModel, JsonValue

from agentworld import __version__
from agentworld.cluster.api_resources import type_fields
from agentworld.cluster.names import GROUP, RELEASE, VERSION
from agentworld.cluster.records.base import Part
from agentworld.records.fields import field_words
from agentworld_operator.resources.kinds import Kind

Schema = dict[str, JsonValue]

_NULL = {"type": "null"}


def crd(kind: Kind) -> Schema:
    """The CRD of a kind."""
    resource_schema = {"type": "object", "description": kind.summary, "required": ["spec"]}
    parts = {"spec": schema(kind.spec), "status": schema(kind.status)}
    subresources: Schema = {"status": {}}
    if kind.scale:
        subresources["scale"] = dict(kind.scale)
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {**resource_schema, "properties": parts}},
        "subresources": subresources,
        "additionalPrinterColumns": [
            {"name": column.name, "type": column.type, "jsonPath": column.path}
            | ({"priority": 1} if column.wide else {})
            for column in kind.columns
        ],
    }
    names = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
        "shortNames": [kind.short_name],
        "categories": ["agentworld"],
    }
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    return {
        **type_fields("CustomResourceDefinition"),
        "metadata": {"name": f"{kind.plural}.{GROUP}", "annotations": {RELEASE: __version__}},
        "spec": cast("JsonValue", spec),
    }


def schema(record: type[BaseModel]) -> Schema:
    """A record's structural schema, with the docstrings of its fields."""
    root = record.model_json_schema()
    defs = root.pop("$defs", {})
    documents = {record_type.__name__: record_type for record_type in _all_records(record)}
    for name, definition in defs.items():
        _describe(definition, documents[name])
    _describe(root, record)
    return _structural(root, defs)


def _structural(node: Mapping[str, Any], defs: Mapping[str, Any]) -> Schema:
    if "$ref" in node:
        node = defs[node["$ref"].rpartition("/")[2]] | node
    if "x-kubernetes-int-or-string" in node:
        return _without(node, "title")
    kinds = [kind for kind in node.get("anyOf", node.get("oneOf", ())) if kind != _NULL]
    if not kinds:
        return _expand(_older_draft(node), defs)
    whole = _structural(kinds[0], defs)
    if len(kinds) > 1:
        whole = _merge([whole, *(_structural(kind, defs) for kind in kinds[1:])])
    if _NULL in node.get("anyOf", ()):
        whole["nullable"] = True
    return whole | {name: node[name] for name in ("description",) if name in node}


def _expand(node: Mapping[str, Any], defs: Mapping[str, Any]) -> Schema:
    nested_schema = _without(node, "title", "$ref", "const")
    if "properties" in node:
        properties = node["properties"].items()
        nested_schema["properties"] = {
            name: _structural(schema, defs) for name, schema in properties
        }
    for name in ("items", "additionalProperties"):
        if isinstance(node.get(name), Mapping):
            nested_schema[name] = _structural(node[name], defs)
    # The API server drops fields that a schema does not name.
    if nested_schema.get("additionalProperties") is False:
        del nested_schema["additionalProperties"]
    return nested_schema


def _without(node: Mapping[str, Any], *names: str) -> Schema:
    return {name: value for name, value in node.items() if name not in names}


def _older_draft(node: Mapping[str, Any]) -> Schema:
    """Exclusive bounds become flags, and a constant becomes an enumeration."""
    draft = dict(node)
    for bound, flag in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if flag in draft:
            draft[bound], draft[flag] = draft[flag], True
    if "const" in draft:
        draft["enum"] = [draft["const"]]
    return draft


def _merge(kinds: list[Schema]) -> Schema:
    """A union of records with different `kind`s: the fields of all of them.

    Without defaults, because one record's field may not appear in another.
    """
    properties: dict[str, Any] = {}
    for kind in kinds:
        for name, schema in cast("Mapping[str, Any]", kind["properties"]).items():
            properties.setdefault(name, _without(schema, "default"))
    enums = [cast("Mapping[str, Any]", kind["properties"])["kind"]["enum"] for kind in kinds]
    properties["kind"] |= {"enum": [value for values in enums for value in values]}
    return {"type": "object", "properties": properties, "required": ["kind"]}


def _all_records(record: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A record and the records of its fields."""
    waiting, visited = [record], set()
    while waiting:
        current = waiting.pop()
        if current in visited:
            continue
        visited.add(current)
        yield current
        for field in current.model_fields.values():
            waiting += _record_types(field.annotation)


def _record_types(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [
        record for part in getattr(annotation, "__args__", ()) for record in _record_types(part)
    ]


def _describe(document: dict[str, Any], record: type[BaseModel]) -> None:
    """Adds field docstrings as descriptions. Fields without a value are left out and never null."""
    words = field_words(record)
    for name, field in record.model_fields.items():
        schema = document["properties"][field.alias or name]
        if name in words:
            schema["description"] = words[name]
        match schema.get("default", ...):
            case None | "":  # a missing field is read as this
                del schema["default"]
            case {}:  # its own fields have defaults
                schema["default"] = {}
        if issubclass(record, Part) and _NULL in schema.get("anyOf", ()):
            schema["anyOf"].remove(_NULL)
