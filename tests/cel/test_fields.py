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
OTHERS = {
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


def pattern_of(words: Any) -> str:
    return str(TypeAdapter(words).json_schema()["pattern"])


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
    pattern_of(LabelKey): "/" + "x" * 63,  # so many characters stand after its slash
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
    said = node.schema[check]
    match check:
        case "enum":
            values = said[-1], "no such word"
        case "pattern":  # in Python, $ would also be before the end of the line
            values = MATCHING[said], MATCHING[said] + BEYOND.get(said, "\n")
        case "minimum" | "maximum":
            inwards = 1 if check == "minimum" else -1
            excluded = node.schema.get(f"exclusive{check.capitalize()}")
            values = (said + inwards, said) if excluded else (said, said - inwards)
        case "minLength":
            values = "x" * said, "x" * (said - 1)
        case "maxLength":
            after = ENDS.get(node.schema.get("pattern", ""), "")
            values = "x" * (said - len(after)) + after, "x" * (said + 1 - len(after)) + after
        case "minProperties":
            least = {f"key{number}": {} for number in range(said)}
            values = least, dict([*least.items()][1:])
        case "maxItems" | "maxProperties":
            values = sized(node, said), sized(node, said + 1)
        case "format":
            values = "2026-11-26T01:30:00Z", "yesterday"
    return Edge(node, check, *values)


def sized(node: Node, number: int) -> Any:
    """So many items, or entries; no two tenants are the same."""
    name = node.path[-1]
    if node.schema["type"] == "object":
        return {f"key{each}": VALUES[name] for each in range(number)}
    return [f"team-{each}" if name == "tenants" else ITEMS[name] for each in range(number)]


def holding(path: tuple[str, ...], value: Any) -> Any:
    """An object with this value there and nothing else."""
    if not path:
        return value
    inner = holding(path[1:], value)
    return {"[]": [inner], "{}": {"key": inner}}.get(path[0], {path[0]: inner})


def named(*path: str) -> str:
    """The API server's name of it."""
    return ".".join(path).replace(".[]", "[0]").replace(".{}", ".key")


def said_of(api: Api, node: Node, value: Any) -> dict[str, str]:
    """The errors of each field if an object has this value there."""
    held = holding(node.path, value)
    if "status" in node.path[:1]:
        answer = api.patch(node.kind, "kept", held, "status", **DRY)
    else:
        answer = api.create({**type_fields(node.kind), "metadata": {"name": "tried"}} | held, **DRY)
    assert answer.status_code in (200, 201, 422), answer.text
    causes = answer.json().get("details", {}).get("causes", ())
    return {cause["field"]: cause["message"] for cause in causes}


@pytest.fixture(scope="module", autouse=True)
def _kept(api):
    """Objects with a status to patch."""
    made = [simulator("kept"), alias("one", "kept"), schedule("kept")]
    for each in made:
        api.create(each).raise_for_status()
    yield
    for each in made:
        api.delete(each)


def test_these_tests_cover_every_schema_keyword_of_the_definitions():
    assert {word for node in NODES for word in node.schema} <= EDGES | OTHERS


@pytest.mark.parametrize(
    "edge",
    [edge(node, check) for node in NODES for check in sorted(EDGES & node.schema.keys())],
    ids=lambda edge: f"{edge.node.id}-{edge.check}",
)
def test_a_field_accepts_its_limit_and_refuses_the_next_value(api, edge):
    field = named(*edge.node.path)
    assert field in said_of(api, edge.node, edge.refused)
    assert field not in said_of(api, edge.node, edge.accepted)


@pytest.mark.parametrize(
    "node", [node for node in NODES if "required" in node.schema], ids=lambda node: node.id
)
def test_a_missing_required_field_is_named(api, node):
    told = said_of(api, node, {})
    missing = [field for field, message in told.items() if message == "Required value"]
    assert {named(*node.path, name) for name in node.schema["required"]} <= set(missing)


# Where a mistyped field could be, among what is written by hand.
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


@pytest.mark.parametrize(("kind", "where"), MISTYPED)
def test_an_unknown_field_is_refused_with_its_name(api, kind, where):
    canary = {"simulator": "two", "percent": 10}
    tried = [simulator("tried"), alias("one", "tried", canary=canary), schedule("tried")]
    made = inside = deepcopy(next(each for each in tried if each["kind"] == kind))
    for name in where.split("."):
        inside = inside[name]
    inside["replcas"] = 1
    answer = api.create(made, **DRY)
    assert answer.status_code == 400, answer.text
    assert f'unknown field "{where}.replcas"' in answer.json()["message"]


def served(api: Api, made: dict[str, Any]) -> dict[str, Any]:
    """The spec as the server would keep it."""
    answer = api.create(made, **DRY)
    assert answer.is_success, answer.text
    return answer.json()["spec"]


def wire(record: Any) -> dict[str, Any]:
    """The resource's form: null values and empty defaults are left out."""
    told = json.loads(record.model_dump_json(exclude_none=True))
    return {name: each for name, each in told.items() if each != ""}


def test_serving_defaults_equal_the_defaults_of_the_record(api):
    made, exists = simulator("tried"), {"operator": "Exists"}
    made["spec"]["serving"] = {"bounds": {}, "nodePool": {"tolerations": [exists]}}
    told = served(api, made)["serving"]
    bounds, pool = told.pop("bounds"), told["nodePool"]
    assert bounds == wire(Bounds())
    assert pool["tolerations"] == [wire(Toleration(operator="Exists"))]
    pool["tolerations"] = []
    assert told == wire(Serving())
    del made["spec"]["serving"]
    assert served(api, made)["serving"] == wire(Serving())


def test_manifest_defaults_equal_the_defaults_of_the_record(api):
    made = simulator("tried")
    whole = made["spec"]["identity"]["manifest"]
    fields = SimulatorManifest.model_fields
    short = {name: whole[name] for name, field in fields.items() if field.is_required()}
    made["spec"]["identity"]["manifest"] = short | {"sampling": {}}
    told = served(api, made)["identity"]["manifest"]
    # An engine's are its own: an endpoint's may not have them.
    assert told == wire(pinned_manifest("tried")) | {"engine": whole["engine"]}


def test_alias_defaults_equal_the_defaults_of_the_record(api):
    assert served(api, alias("one", "tried")) == wire(AliasSpec(simulator="one"))


def test_a_schedule_is_not_suspended_by_default(api):
    made = schedule("tried")
    assert served(api, made) == made["spec"] | {"suspend": False}


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
    made = simulator("tried")
    made["spec"]["identity"]["manifest"] = json.loads(manifest.canonical)
    told = served(api, made)["identity"]["manifest"]
    assert SimulatorManifest.model_validate(told).digest == manifest.digest
    assert told == json.loads(manifest.canonical)
