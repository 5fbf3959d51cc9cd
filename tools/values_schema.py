"""The schema of a chart's values, from values.yaml: `python tools/values_schema.py CHART`.

What a value is by default says its type, the comment above it is its description, and what else
it has to be stands here. Nothing that values.yaml has not got is taken, so that a value with a
letter wrong is refused and not ignored.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from agentworld.access.directory import Directory

Schema = dict[str, Any]

_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_OBJECTS = {"type": "array", "items": {"type": "object"}}
_MORE_THAN_0 = {"type": "number", "exclusiveMinimum": 0}
_NAME = {"pattern": r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$"}
_SIZE = {"pattern": r"^[0-9]+(\.[0-9]+)?([KMGTP]i?|k)?$"}
_STORE = {"pattern": r"^(/|[a-z0-9]+://).+$"}
_BUCKET = {"pattern": "://"}
_QUANTITIES = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
_PART = {"type": "object", "additionalProperties": False}
_REFERENCE = {**_PART, "properties": {"name": {**_TEXT, "minLength": 1}}, "required": ["name"]}
_VARIABLE = {"type": "object", "required": ["name"]}
# Without its name a route also serves listeners without TLS.
_LISTENER = {"type": "object", "required": ["name", "sectionName"]}
_INTERVAL = {"pattern": r"^([0-9]+(ms|s|m|h|d))+$"}
_PORT = {"type": "integer", "minimum": 1, "maximum": 65535}

# By a value's last name, wherever it stands.
_NAMED_SO: Schema = {
    "digest": {"pattern": r"^(sha256:[0-9a-f]{64})?$"},
    "name": {"pattern": r"^[a-z0-9][a-z0-9.:/_-]*$"},
    "replicas": {"minimum": 0},
    "existing": _NAME,
    "existingConfigMap": _NAME,
    "existingSecret": _NAME,
    "priorityClassName": _NAME,
    "storageClass": _NAME,
    "size": _SIZE,
    "annotations": _TEXTS,
    "extraEnv": {"type": "array", "items": _VARIABLE},
    "labels": _TEXTS,
    "podAnnotations": _TEXTS,
    "podLabels": _TEXTS,
    "topologySpreadConstraints": _OBJECTS,
    "nodeSelector": _TEXTS,
    "tolerations": _OBJECTS,
    "resources": {**_PART, "properties": {"requests": _QUANTITIES, "limits": _QUANTITIES}},
}
_ACCOUNTS = ("backup", "console", "database", "engines", "mlflow", "operator", "service")
# By the whole name.
_CALLED: Schema = {
    **{f"{component}.serviceAccount.name": _NAME for component in _ACCOUNTS},
    "access.tenants": {"$ref": "#/definitions/Tenants"},
    "backup.databaseSecret": _NAME,
    "backup.deadlineSeconds": {"minimum": 1},
    "backup.dumpSize": _SIZE,
    "backup.keep": {"minimum": 1},
    "backup.schedule": {"pattern": r"^(\S+ +){4}\S+$"},
    "backup.storesSecret": _NAME,
    "backup.url": _STORE,
    "console.databaseSecret": _NAME,
    "console.mlflowUrl": {"pattern": "^(https?://.+)?$"},
    "console.proxySecret": _NAME,
    "console.serviceKeysConfigMap": _NAME,
    "console.store": {"pattern": "^(/|[a-z0-9]+://)"},
    "console.storesSecret": _NAME,
    "images.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "images.pullSecrets": {"items": _REFERENCE},
    "images.registry": {"pattern": r"^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$"},
    "ingress.className": _NAME,
    "ingress.consoleHost": _NAME,
    "ingress.gateways": {"items": _LISTENER},
    "ingress.issuer.name": _NAME,
    "ingress.serviceHost": _NAME,
    "ingress.tlsSecret": _NAME,
    "mlflow.artifactsUrl": _STORE,
    "monitoring.podMonitor.interval": _INTERVAL,
    "monitoring.serviceMonitor.interval": _INTERVAL,
    "networkPolicies.apiServer.cidr": {"pattern": r"^([0-9a-fA-F.:]+/[0-9]+)?$"},
    "networkPolicies.apiServer.ports": {"items": _PORT, "minItems": 1},
    "networkPolicies.cilium.webhookEntities": {"items": _TEXT, "minItems": 1},
    "networkPolicies.clients": _OBJECTS,
    "networkPolicies.egress": _OBJECTS,
    "networkPolicies.engineScrapers": _OBJECTS,
    "networkPolicies.scrapers": _OBJECTS,
    "networkPolicies.webhookClients": _OBJECTS,
    "operator.leaseSeconds": {"type": "number", "exclusiveMinimum": 3},
    "operator.replicas": {"minimum": 1},
    "operator.webhook.issuer.name": _NAME,
    "pipelines.account.name": _NAME,
    "pipelines.account.namespace": _NAME,
    "pipelines.namespace": _NAME,
    "pipelines.placement": {"additionalProperties": True},  # the operator says what is wrong in it
    "pipelines.url": {"pattern": "^(https?://.+)?$"},
    "service.engineConcurrency": {"minimum": 1, "maximum": 100000},  # more is told as 1e+06
    "service.engineKeySecret": _NAME,
    "service.engineWaitSeconds": _MORE_THAN_0,
    "service.idleSeconds": _MORE_THAN_0,
    "service.stepKeysConfigMap": _NAME,
    "service.tracesEndpoint": {"pattern": "^(https?://.+)?$"},
    "service.type": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
    "stores.mirrorUrl": _STORE,
    "stores.claim.accessMode": {"enum": ["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"]},
    "stores.objectsUrl": _STORE,
    # A folder without a claim would be on a root that nobody can write to.
    "stores": {
        "if": {"properties": {"claim": {"properties": {"enabled": {"const": False}}}}},
        "then": {"properties": dict.fromkeys(("objectsUrl", "mirrorUrl"), _BUCKET)},
    },
}
_TYPES = {str: "string", bool: "boolean", int: "integer", list: "array", dict: "object"}


def schema(text: str) -> Schema:
    """Of a chart's values.yaml."""
    values, descriptions = yaml.safe_load(text), dict(_read_descriptions(text))
    whole = _of("", values, descriptions)
    # Helm hands it to a chart that is a part of another one.
    whole["properties"]["global"] = {"type": "object"}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": "Generated from values.yaml by `make manifests`; change that.",
        **whole,
        "definitions": _access(),
    }


def _of(path: str, value: object, descriptions: dict[str, str]) -> Schema:
    described: Schema = {"description": descriptions[path]} if path in descriptions else {}
    described["type"] = _TYPES[type(value)]
    if isinstance(value, dict) and value:
        dotted = f"{path}." if path else ""
        inner = {name: _of(f"{dotted}{name}", child, descriptions) for name, child in value.items()}
        described |= {"additionalProperties": False, "properties": inner}
    last = path.rpartition(".")[2]
    described |= _NAMED_SO.get(last, {}) | _CALLED.get(path, {})
    if "$ref" in described:  # what stands beside it is not read
        return {"description": described["description"], "allOf": [_CALLED[path]]}
    if not described.keys() & {"properties", "additionalProperties", "items"}:
        assert not isinstance(value, dict | list), f"say in {__file__} what {path} may hold"
    return described


def _read_descriptions(text: str) -> Iterator[tuple[str, str]]:
    """Each value that has a `# --` above it, by its whole name."""
    lines = text.splitlines()

    def walk(node: yaml.Node | None, path: str) -> Iterator[tuple[str, str]]:
        for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
            name, line = f"{path}{key.value}", key.start_mark.line
            description = _above(lines, line)
            if description and not lines[line][: key.start_mark.column].strip():
                yield name, description
            yield from walk(value, f"{name}.")

    yield from walk(yaml.compose(text, yaml.SafeLoader), "")


def _above(lines: list[str], line: int) -> str:
    parts: list[str] = []
    for comment in map(str.strip, reversed(lines[:line])):
        if not comment.startswith("# "):
            return ""
        parts.insert(0, comment.removeprefix("# "))
        if parts[0].startswith("-- "):
            return " ".join(parts).removeprefix("-- ")
    return ""


def _access() -> Schema:
    """Tenants as the service reads them, in the older draft that Helm's own tools write."""
    directory = Directory.model_json_schema()
    definitions = directory["$defs"] | {"Tenants": directory["properties"]["tenants"]}
    translated: Schema = json.loads(json.dumps(definitions).replace("#/$defs/", "#/definitions/"))
    return {name: _strict(definition) for name, definition in translated.items()}


def _strict(node: Any) -> Any:
    """A name that is none is refused, as the service does."""
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    strict = {
        name: _strict(item) for name, item in node.items() if name not in ("title", "default")
    }
    return strict | ({"additionalProperties": False} if "patternProperties" in node else {})


if __name__ == "__main__":
    chart = Path(sys.argv[1])
    print(json.dumps(schema((chart / "values.yaml").read_text(encoding="utf-8")), indent=2))  # noqa: T201
