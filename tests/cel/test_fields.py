"""Every field is validated by its definition, and none is dropped silently."""

import json
from copy import deepcopy
from typing import Any, NamedTuple

import pytest
from pydantic import TypeAdapter

from agentworld.cluster.api_resources import type_fields
from agentworld.cluster.records.alias import AliasSpec
from agentworld.cluster.records.base import Condition
from agentworld.cluster.records.serving import Bounds, Serving, Toleration
from agentworld.cluster.terms import Image, ImageByDigest, LabelKey, LabelValue, ObjectName
from agentworld.records.simulator import SimulatorManifest
from cel.schemas import Node, nodes
from cel.server import DRY, Api
from make import records
from make.simulator import alias, pinned_manifest, schedule, simulator

pytestmark = pytest.mark.waits

# Of one value; the rules in CEL have tests of their own.
EDGES = {
    "enum",
    "maxItems",
    "format",
    "maxLength",
    "maxProperties",
    "maximum",
    "minLength",
    "minProperties",
    "minimum",
    "pattern",
}
OTHER_KEYWORDS = {
    "additionalProperties",
    "anyOf",
    "default",
    "description",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "nullable",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-validations",
}


def pattern_of(annotation: Any) -> str:
    return str(TypeAdapter(annotation).json_schema()["pattern"])


MATCHING = {
    "^sha256:[0-9a-f]{64}$": records.digest("matching"),
    "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$": "acme",
    r"^https?://[^\s/?#@]+(/[^\s?#@]*)?$": "http://endpoint/v1",
    pattern_of(LabelKey): "nvidia.com/gpu",
    pattern_of(LabelValue): "yes",
    pattern_of(ObjectName): "weights",
    pattern_of(Image): "registry.example/vllm",
    pattern_of(ImageByDigest): f"registry.example/world@{records.digest('image')}",
    **{
        Condition.model_json_schema()["properties"][name]["pattern"]: "Ready"
        for name in ("type", "reason")
    },
    r"^[^\x00]*$": "any",
}
BEYOND = {r"^[^\x00]*$": "\0"}
"""Appended where the end of a line would still match."""
ENDS = {
    pattern_of(LabelKey): "/" + "x" * 63,  # this many characters stand after its slash
    pattern_of(ImageByDigest): f"@{records.digest('image')}",
}
"""The end of the longest value that still matches its pattern."""
VALUES = {"limits": 1, "requests": "1Gi", "selector": "yes"}
ITEMS = {
    "gate": {"metric": "live_gain", "least": 0.1},
    "tolerations": {"operator": "Exists"},
}
NODES = nodes()


class Edge(NamedTuple):
    """The last value that a field may have, and the first that it may not."""

    node: Node
    check: str
    accepted: Any
    refused: Any


def edge(node: Node, check: str) -> Edge:
    limit = node.schema[check]
    match check:
        case "enum":
            values = limit[-1], "no such word"
        case "pattern":  # in Python, $ would also be before the end of the line
            values = MATCHING[limit], MATCHING[limit] + BEYOND.get(limit, "\n")
        case "minimum" | "maximum":
            step = 1 if check == "minimum" else -1
            excluded = node.schema.get(f"exclusive{check.capitalize()}")
            values = (limit + step, limit) if excluded else (limit, limit - step)
        case "minLength":
            values = "x" * limit, "x" * (limit - 1)
        case "maxLength":
            after = ENDS.get(node.schema.get("pattern", ""), "")
            values = "x" * (limit - len(after)) + after, "x" * (limit + 1 - len(after)) + after
        case "minProperties":
            least = {f"key{number}": {} for number in range(limit)}
            values = least, dict([*least.items()][1:])
        case "maxItems" | "maxProperties":
            values = build_entries(node, limit), build_entries(node, limit + 1)
        case "format":
            values = "2026-11-26T01:30:00Z", "yesterday"
    return Edge(node, check, *values)


def build_entries(node: Node, number: int) -> Any:
    """A list or an object with this number of entries; the tenants are unique."""
    name = node.path[-1]
    if node.schema["type"] == "object":
        return {f"key{index}": VALUES[name] for index in range(number)}
    return [f"team-{index}" if name == "tenants" else ITEMS[name] for index in range(number)]


def nest(path: tuple[str, ...], value: Any) -> Any:
    """An object with this value at the path and nothing else."""
    if not path:
        return value
    inner = nest(path[1:], value)
    return {"[]": [inner], "{}": {"key": inner}}.get(path[0], {path[0]: inner})


def api_path(*path: str) -> str:
    """The API server's name of a path."""
    return ".".join(path).replace(".[]", "[0]").replace(".{}", ".key")


def errors_of(api: Api, node: Node, value: Any) -> dict[str, str]:
    """The errors of each field if an object has this value at the node."""
    fields = nest(node.path, value)
    if "status" in node.path[:1]:
        answer = api.patch(node.kind, "kept", fields, "status", **DRY)
    else:
        answer = api.create(
            {**type_fields(node.kind), "metadata": {"name": "tried"}} | fields, **DRY
        )
    assert answer.status_code in (200, 201, 422), answer.text
    causes = answer.json().get("details", {}).get("causes", ())
    return {cause["field"]: cause["message"] for cause in causes}


@pytest.fixture(scope="module", autouse=True)
def _stored_objects(api):
    """Objects with a status to patch."""
    resources = [simulator("kept"), alias("one", "kept"), schedule("kept")]
    for resource in resources:
        api.create(resource).raise_for_status()
    yield
    for resource in resources:
        api.delete(resource)


def test_these_tests_cover_every_schema_keyword_of_the_definitions():
    assert {word for node in NODES for word in node.schema} <= EDGES | OTHER_KEYWORDS


@pytest.mark.parametrize(
    "edge",
    [edge(node, check) for node in NODES for check in sorted(EDGES & node.schema.keys())],
    ids=lambda edge: f"{edge.node.id}-{edge.check}",
)
def test_a_field_accepts_its_limit_and_refuses_the_next_value(api, edge):
    field = api_path(*edge.node.path)
    assert field in errors_of(api, edge.node, edge.refused)
    assert field not in errors_of(api, edge.node, edge.accepted)


@pytest.mark.parametrize(
    "node", [node for node in NODES if "required" in node.schema], ids=lambda node: node.id
)
def test_a_missing_required_field_is_named(api, node):
    errors = errors_of(api, node, {})
    missing = [field for field, message in errors.items() if message == "Required value"]
    assert {api_path(*node.path, name) for name in node.schema["required"]} <= set(missing)


# The hand-written objects, in which a field could be misspelled.
MISTYPED = [
    ("Simulator", "spec"),
    ("Simulator", "spec.identity"),
    ("Simulator", "spec.identity.manifest"),
    ("Simulator", "spec.identity.manifest.engine"),
    ("Simulator", "spec.serving"),
    ("Simulator", "spec.serving.weights"),
    ("SimulatorAlias", "spec"),
    ("SimulatorAlias", "spec.canary"),
    ("TrainingSchedule", "spec"),
]


@pytest.mark.parametrize(("kind", "path"), MISTYPED)
def test_an_unknown_field_is_refused_with_its_name(api, kind, path):
    canary = {"simulator": "two", "percent": 10}
    candidates = [simulator("tried"), alias("one", "tried", canary=canary), schedule("tried")]
    resource = parent = deepcopy(
        next(candidate for candidate in candidates if candidate["kind"] == kind)
    )
    for name in path.split("."):
        parent = parent[name]
    parent["replcas"] = 1
    answer = api.create(resource, **DRY)
    assert answer.status_code == 400, answer.text
    assert f'unknown field "{path}.replcas"' in answer.json()["message"]


def stored_spec(api: Api, resource: dict[str, Any]) -> dict[str, Any]:
    """The spec as the server would keep it."""
    answer = api.create(resource, **DRY)
    assert answer.is_success, answer.text
    return answer.json()["spec"]


def wire(record: Any) -> dict[str, Any]:
    """The resource's form: null values and empty defaults are left out."""
    fields = json.loads(record.model_dump_json(exclude_none=True))
    return {name: value for name, value in fields.items() if value != ""}


def test_serving_defaults_equal_the_defaults_of_the_record(api):
    resource, toleration = simulator("tried"), {"operator": "Exists"}
    resource["spec"]["serving"] = {"bounds": {}, "nodePool": {"tolerations": [toleration]}}
    serving = stored_spec(api, resource)["serving"]
    bounds, pool = serving.pop("bounds"), serving["nodePool"]
    assert bounds == wire(Bounds())
    assert pool["tolerations"] == [wire(Toleration(operator="Exists"))]
    pool["tolerations"] = []
    assert serving == wire(Serving())
    del resource["spec"]["serving"]
    assert stored_spec(api, resource)["serving"] == wire(Serving())


def test_manifest_defaults_equal_the_defaults_of_the_record(api):
    resource = simulator("tried")
    manifest = resource["spec"]["identity"]["manifest"]
    fields = SimulatorManifest.model_fields
    required = {name: manifest[name] for name, field in fields.items() if field.is_required()}
    resource["spec"]["identity"]["manifest"] = required | {"sampling": {}}
    stored = stored_spec(api, resource)["identity"]["manifest"]
    # An engine has no defaults, because an endpoint may not have its fields.
    assert stored == wire(pinned_manifest("tried")) | {"engine": manifest["engine"]}


def test_alias_defaults_equal_the_defaults_of_the_record(api):
    assert stored_spec(api, alias("one", "tried")) == wire(AliasSpec(simulator="one"))


def test_a_schedule_is_not_suspended_by_default(api):
    resource = schedule("tried")
    assert stored_spec(api, resource) == resource["spec"] | {"suspend": False}


ENDPOINT = {"kind": "openai", "url": "https://endpoint.example/v1", "model": "world"}


@pytest.mark.parametrize(
    "manifest",
    [
        pinned_manifest(),
        pinned_manifest(engine=ENDPOINT, artifact=None, files={}),
        pinned_manifest(sampling={"temperature": 0.1, "stop": ["\n$ "]}, control_text="caf\u00e9"),
        pinned_manifest(confidence={"num_samples": 3, "min_agreement": 0.3, "min_logprob": -2.5}),
    ],
    ids=["engine", "endpoint", "sampling", "confidence"],
)
def test_a_stored_manifest_keeps_its_digest(api, manifest):
    resource = simulator("tried")
    resource["spec"]["identity"]["manifest"] = json.loads(manifest.canonical)
    stored = stored_spec(api, resource)["identity"]["manifest"]
    assert SimulatorManifest.model_validate(stored).digest == manifest.digest
    assert stored == json.loads(manifest.canonical)
