"""Custom resource definitions of other projects, built from types of their fields: packages', or
ours.

The schemas are closed: unknown fields are dropped, and values of another type are refused.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from agentworld.cluster.api_resources import ApiResource
from agentworld.cluster.client import ApiServer
from agentworld.errors import ClusterError, UnknownPath
from waiting import wait_for

Object = dict[str, Any]
Schema = dict[str, Any]

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CONFLICT = 409
_INT_OR_STRING = "x-kubernetes-int-or-string"
# Types of Kubernetes that a package wraps in its own types.
_WRAPPED = {
    "Quantity": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?(m|[kMGTPE]i?|Ki)?$"},
    "IntOrString": {_INT_OR_STRING: True},
}
_KEPT = (
    *("type", "items", "properties", "additionalProperties", "required"),
    *("format", "pattern", "enum", "minLength", "maxLength"),
)


def definition(kind: str, resource: ApiResource, **parts: type[BaseModel]) -> Object:
    """The definition of a kind whose objects have these fields, such as `spec`."""
    properties = {name: _schema(part) for name, part in parts.items()}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": properties}
        },
        "subresources": {"status": {}} if "status" in parts else {},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": resource.plural},
            "versions": [version],
        },
    }


def _schema(record: type[BaseModel]) -> Schema:
    schema = record.model_json_schema(by_alias=True)
    return _structural(schema, schema.get("$defs", {}))


def _structural(node: Mapping[str, Any], defs: Mapping[str, Any]) -> Schema:
    if node.get(_INT_OR_STRING):
        return {_INT_OR_STRING: True}
    kinds = [kind for kind in node.get("anyOf", ()) if kind != {"type": "null"}]
    if kinds:
        (node,) = kinds
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        matches = [schema for end, schema in _WRAPPED.items() if name.endswith(end)]
        return dict(*matches) if matches else _structural(defs[name], defs)
    if node.get("additionalProperties") is True:  # managed fields
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {word: node[word] for word in _KEPT if word in node}
    for word in ("items", "additionalProperties"):
        if schema.get(word):
            schema[word] = _structural(schema[word], defs)
    if schema.get("additionalProperties") is False:
        del schema["additionalProperties"]
    if "properties" in schema:
        properties = schema["properties"].items()
        schema["properties"] = {
            name: _structural(property_schema, defs) for name, property_schema in properties
        }
    return schema


def define(server: ApiServer, resource_definition: Object) -> None:
    """Registers a kind, and waits until it is served; it may be registered already."""
    try:
        server.call("POST", _DEFINITIONS, body=resource_definition)
    except ClusterError as error:
        if error.status != _CONFLICT:
            raise
    spec = resource_definition["spec"]
    path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"

    def is_served() -> bool:
        try:
            return bool(server.call("GET", path))
        except UnknownPath:
            return False

    wait_for(is_served)
