import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from agentworld import __version__
from agentworld.cluster.records.serving import Weights
from agentworld.cluster.records.simulator import Identity, SimulatorSpec
from agentworld.records.base import Digest, Label
from agentworld_operator.resources.crd import crd, schema
from agentworld_operator.resources.kinds import KINDS, SIMULATOR
from cel.schemas import nodes


class LimitedTexts(BaseModel):
    """Texts whose patterns limit their length."""

    digest: Digest
    label: Label


def schemas(node):
    yield node
    for child in node.get("properties", {}).values():
        yield from schemas(child)
    for name in ("items", "additionalProperties"):
        if isinstance(node.get(name), dict):
            yield from schemas(node[name])


def served_version():
    return crd(SIMULATOR)["spec"]["versions"][0]


def test_the_schema_is_structural():
    root = served_version()["schema"]["openAPIV3Schema"]
    for node in schemas(root):
        assert "type" in node or node.get("x-kubernetes-int-or-string")
        assert not {"$ref", "oneOf", "const", "title", "discriminator"} & node.keys()
        assert node.get("default", "") is not None


def test_every_serving_field_has_a_description_or_a_plain_name():
    plain_names = {"replicas", "max", "key", "operator", "value", "effect", "tolerationSeconds"}
    plain_names |= {"readyReplicas", "openEpisodes", "requests", "tolerations", "type", "status"}
    spec = schema(SimulatorSpec)["properties"]["serving"]
    for node in schemas(spec):
        for name, field in node.get("properties", {}).items():
            assert "description" in field or name in plain_names, name


def test_a_rule_forbids_identity_changes_with_a_remedy_in_its_message():
    rules = schema(Identity)["x-kubernetes-validations"]
    frozen = next(rule for rule in rules if rule["rule"] == "self == oldSelf")
    assert "create a new Simulator" in frozen["message"]


def test_an_endpoint_manifest_gets_no_engine_defaults():
    manifest = schema(Identity)["properties"]["manifest"]
    engine = manifest["properties"]["engine"]
    assert set(engine["properties"]) >= {"kind", "image", "url", "model"}
    assert engine["required"] == ["kind"]
    assert engine["properties"]["kind"]["enum"] == ["transformers-serve", "vllm", "openai"]
    assert not [name for name, field in engine["properties"].items() if "default" in field]


def test_nullable_manifest_fields_stay_nullable():
    manifest = schema(Identity)["properties"]["manifest"]["properties"]
    assert manifest["artifact"]["nullable"]
    assert "nullable" not in schema(Weights)["properties"]["claim"]


def test_exclusive_bounds_use_the_older_json_schema_draft():
    sampling = schema(Identity)["properties"]["manifest"]["properties"]["sampling"]
    assert sampling["properties"]["top_p"] | {"description": ""} == {
        "type": "number",
        "minimum": 0,
        "exclusiveMinimum": True,
        "maximum": 1,
        "default": 1.0,
        "description": "",
    }


METAV1_CONDITION = {
    "type": {"type": "string", "maxLength": 316},
    "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
    "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
    "message": {"type": "string", "maxLength": 32768},
    "observedGeneration": {"type": "integer", "minimum": 0},
    "lastTransitionTime": {"type": "string", "format": "date-time"},
}
"""The markers of `Condition` in pkg/apis/meta/v1/types.go of kubernetes/apimachinery."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_conditions_are_those_of_kubernetes_with_its_limits(kind):
    conditions = schema(kind.status)["properties"]["conditions"]["items"]
    assert set(conditions["required"]) == METAV1_CONDITION.keys()
    for name, field in conditions["properties"].items():
        assert METAV1_CONDITION[name].items() <= field.items(), name
    for name in ("type", "reason"):
        assert re.search(conditions["properties"][name]["pattern"], "FilesMatch")
        assert not re.search(conditions["properties"][name]["pattern"], "files match")


@pytest.mark.compute
def test_every_text_field_has_a_length_limit():
    """A manifest is only limited by the object's own size, because a cut would change its
    digest.
    """
    limit_keywords = {"maxLength", "enum", "format"}
    fixed_patterns = {
        schema(LimitedTexts)["properties"][name]["pattern"] for name in ("digest", "label")
    }
    texts = [
        node
        for node in nodes()
        if node.schema.get("type") == "string" or "x-kubernetes-int-or-string" in node.schema
        if "manifest" not in node.path
    ]
    assert len(texts) > 40
    unlimited_ids = [
        node.id
        for node in texts
        if not limit_keywords & node.schema.keys()
        and node.schema.get("pattern") not in fixed_patterns
    ]
    assert unlimited_ids == []


def test_tenants_are_a_set_of_names_and_empty_by_default():
    tenants = schema(SimulatorSpec)["properties"]["serving"]["properties"]["tenants"]
    assert (tenants["x-kubernetes-list-type"], tenants["default"]) == ("set", [])
    assert "pattern" in tenants["items"]


@pytest.mark.compute
def test_the_definition_supports_kubectl_scale_and_get():
    assert served_version()["subresources"]["scale"]["specReplicasPath"] == ".spec.serving.replicas"
    assert [column["name"] for column in served_version()["additionalPrinterColumns"]][:2] == [
        "Ready",
        "Reason",
    ]


@pytest.mark.compute
def test_the_version_plan_in_the_docs_begins_with_the_served_version():
    page = (Path(__file__).parents[3] / "docs/operate/resource-versions.md").read_text()
    for kind in KINDS:
        [version] = crd(kind)["spec"]["versions"]
        assert (version["served"], version["storage"]) == (True, True)
        assert f"| now | `agentworld.dev/{version['name']}` | `{version['name']}` |" in page
    assert f'{__version__} ["{version["name"]}"]' in page
