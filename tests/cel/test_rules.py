"""Every rule in CEL accepts valid objects, and explains each refusal."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from agentworld.cluster.api_resources import type_fields
from cel.schemas import nodes
from cel.server import DRY, Api
from make import records
from make.simulator import pinned_manifest, schedule

pytestmark = pytest.mark.waits

Spec = dict[str, Any]


class Rule(NamedTuple):
    kind: str
    path: str
    message: str


class Case(NamedTuple):
    """Accepted and refused specs, and the stored spec where the rule is about a change."""

    accepted: tuple[Spec, ...]
    refused: tuple[Spec, ...]
    before: Spec | None = None


def manifest(seed: str = "one", **fields: object) -> Spec:
    return json.loads(pinned_manifest(seed, **fields).canonical)


def reference(seed: str = "one") -> Spec:
    return {"url": f"s3://simulators/{seed}", "digest": records.digest(seed)}


def spec(**serving: object) -> Spec:
    return {"identity": {"reference": reference()}, "serving": serving}


def toleration_spec(**toleration: object) -> Spec:
    return spec(nodePool={"tolerations": [toleration]})


def schedule_spec(cron: str = "0 3 * * *", store: str = "/store") -> Spec:
    return schedule(cron=cron, store=store)["spec"]


def identity_spec(**identity: object) -> Spec:
    return {"identity": identity}


IMMUTABLE = Rule(
    "Simulator",
    "spec.identity",
    "an identity never changes: create a new Simulator and move the alias to it",
)
ONE_IDENTITY = Rule(
    "Simulator", "spec.identity", "give the manifest or a reference to it, one of the two"
)
_IMAGE = f"mirror.example/world@sha256:{'0' * 64}"
ONE_PLACE = Rule(
    "Simulator", "spec.serving.weights", "name a claim, a url or an image, one of the three"
)
CACHE_OF_URL = Rule(
    "Simulator",
    "spec.serving.weights",
    "a cache keeps what is fetched from a url; name the url, or leave the cache out",
)
ONE_SIZE = Rule("Simulator", "spec.serving.bounds", "min is more than max: raise max, or lower min")
_TOLERATION = ("Simulator", "spec.serving.nodePool.tolerations.[]")
ANY_VALUE = Rule(*_TOLERATION, "a taint that exists has any value; leave the value out")
ANY_KEY = Rule(*_TOLERATION, "without a key every taint is meant; write `operator: Exists`")
SENDS_AWAY = Rule(*_TOLERATION, "nodes send pods away by `effect: NoExecute` alone; write that")
FIVE_FIELDS = Rule(
    "TrainingSchedule",
    "spec",
    "give five fields: minute, hour, day of the month, month, day of the week",
)
FOR_EVERY_POD = Rule(
    "TrainingSchedule",
    "spec",
    "name the store as every pod reaches it: a whole path, as /store, or a URL",
)

CASES: Mapping[Rule, tuple[Case, ...]] = {
    IMMUTABLE: (
        Case(
            before=identity_spec(manifest=manifest()),
            accepted=(
                identity_spec(manifest=manifest()),
                identity_spec(manifest=manifest()) | {"serving": {"replicas": 3, "suspend": True}},
            ),
            refused=(
                identity_spec(manifest=manifest("two")),
                identity_spec(manifest=manifest(artifact=records.digest("another"))),
                identity_spec(manifest=manifest(files={})),
                identity_spec(manifest=manifest(sampling={"max_tokens": 255})),
                identity_spec(reference=reference()),
            ),
        ),
        Case(
            before=identity_spec(reference=reference()),
            accepted=(spec(replicas=0, image="registry.example/vllm"),),
            refused=(
                identity_spec(reference=reference("two")),
                identity_spec(reference=reference() | {"url": "s3://elsewhere"}),
                identity_spec(manifest=manifest()),
            ),
        ),
    ),
    ONE_IDENTITY: (
        Case(
            accepted=(identity_spec(manifest=manifest()), identity_spec(reference=reference())),
            refused=({"identity": {}}, identity_spec(manifest=manifest(), reference=reference())),
        ),
    ),
    ONE_PLACE: (
        Case(
            accepted=(
                spec(weights={"claim": "weights", "path": "world"}),
                spec(weights={"url": "s3://weights"}),
                spec(weights={"image": _IMAGE, "path": "world"}),
                spec(),
            ),
            refused=(
                spec(weights={}),
                spec(weights={"path": "world"}),
                spec(weights={"claim": "weights", "url": "s3://weights"}),
                spec(weights={"claim": "weights", "image": _IMAGE}),
                spec(weights={"claim": "weights", "url": "s3://weights", "image": _IMAGE}),
            ),
        ),
    ),
    CACHE_OF_URL: (
        Case(
            accepted=(spec(weights={"url": "s3://weights", "cache": "models"}),),
            refused=(
                spec(weights={"claim": "weights", "cache": "models"}),
                spec(weights={"image": _IMAGE, "cache": "models"}),
            ),
        ),
    ),
    ONE_SIZE: (
        Case(
            accepted=(
                spec(bounds={}),
                spec(bounds={"min": 1}),
                spec(bounds={"min": 2, "max": 2}),
                spec(bounds={"max": 3}),
            ),
            refused=(
                spec(bounds={"min": 2}),  # max is 1 where it is not given
                spec(bounds={"min": 3, "max": 2}),
            ),
        ),
    ),
    ANY_VALUE: (
        Case(
            accepted=(
                toleration_spec(key="gpu", operator="Exists"),
                toleration_spec(key="gpu", operator="Exists", value=""),
                toleration_spec(key="gpu", value="yes"),
            ),
            refused=(toleration_spec(key="gpu", operator="Exists", value="yes"),),
        ),
    ),
    ANY_KEY: (
        Case(
            accepted=(toleration_spec(operator="Exists"), toleration_spec(key="gpu")),
            refused=(toleration_spec(), toleration_spec(operator="Equal", value="yes")),
        ),
    ),
    SENDS_AWAY: (
        Case(
            accepted=(toleration_spec(key="gpu", effect="NoExecute", tolerationSeconds=0),),
            refused=(
                toleration_spec(key="gpu", tolerationSeconds=3),
                toleration_spec(key="gpu", effect="NoSchedule", tolerationSeconds=3),
            ),
        ),
    ),
    FIVE_FIELDS: (
        Case(
            accepted=tuple(
                map(schedule_spec, ("0 3 * * *", "*/5  1-3 ? jan mon-fri", " 0 3 * * * "))
            ),
            refused=tuple(
                map(schedule_spec, ("0 3 * *", "0 0 3 * * *", "@daily", "0 3 * * *\n1", " "))
            ),
        ),
    ),
    FOR_EVERY_POD: (
        Case(
            accepted=tuple(
                schedule_spec(store=store) for store in ("/store", "/", "s3://worlds/store")
            ),
            refused=tuple(schedule_spec(store=store) for store in ("store", "./store")),
        ),
    ),
}


def cases(field: str) -> list[Any]:
    return [
        pytest.param(
            rule, case.before, case_spec, id=f"{rule.path}-{rule.message[:9]}-{field}{number}"
        )
        for rule, rule_cases in CASES.items()
        for number, (case, case_spec) in enumerate(
            (case, case_spec) for case in rule_cases for case_spec in getattr(case, field)
        )
    ]


def test_every_rule_of_the_definitions_is_tested_here():
    rules = [
        Rule(node.kind, ".".join(node.path), rule["message"])
        for node in nodes()
        for rule in node.schema.get("x-kubernetes-validations", ())
    ]
    assert sorted(rules) == sorted(CASES)
    for rule_cases in CASES.values():
        assert all(case.accepted and case.refused for case in rule_cases)


def submit(api: Api, kind: str, before: Spec | None, new_spec: Spec) -> Any:
    """The response to a spec, as an update of an earlier one if there is one."""
    resource = {**type_fields(kind), "metadata": {"name": "tried"}}
    if before is None:
        return api.create(resource | {"spec": new_spec}, **DRY)
    api.create(resource | {"spec": before}).raise_for_status()
    try:
        return api.replace(resource | {"spec": new_spec}, **DRY)
    finally:
        api.delete(resource)


@pytest.mark.parametrize(("rule", "before", "new_spec"), cases("accepted"))
def test_a_spec_that_meets_a_rule_is_accepted(api, rule, before, new_spec):
    answer = submit(api, rule.kind, before, new_spec)
    assert answer.is_success, answer.text


@pytest.mark.parametrize(("rule", "before", "new_spec"), cases("refused"))
def test_a_spec_that_breaks_a_rule_is_refused_with_field_and_remedy(api, rule, before, new_spec):
    answer = submit(api, rule.kind, before, new_spec)
    assert answer.status_code == 422, answer.text
    body, field = answer.json(), rule.path.replace(".[]", "[0]")
    assert body["message"].endswith(f"{field}: Invalid value: {rule.message}")
    assert [cause["field"] for cause in body["details"]["causes"]] == [field]


def test_a_patch_of_the_status_does_not_change_the_identity(api):
    resource = {**type_fields("Simulator"), "metadata": {"name": "patched"}, "spec": spec()}
    api.create(resource).raise_for_status()
    patch = {"status": {"replicas": 2}, "spec": identity_spec(reference=reference("two"))}
    api.patch("Simulator", "patched", patch, "status").raise_for_status()
    stored = api.get("Simulator", "patched")
    api.delete(resource)
    assert stored["status"]["replicas"] == 2
    assert stored["spec"]["identity"]["reference"] == reference()


def test_an_identity_cannot_be_removed(api):
    resource = {**type_fields("Simulator"), "metadata": {"name": "stripped"}, "spec": spec()}
    api.create(resource).raise_for_status()
    identity_answer = api.patch("Simulator", "stripped", {"spec": {"identity": None}})
    reference_answer = api.patch(
        "Simulator", "stripped", {"spec": {"identity": {"reference": None}}}
    )
    api.delete(resource)
    assert "spec.identity: Required value" in identity_answer.json()["message"]
    assert IMMUTABLE.message in reference_answer.json()["message"]


def test_an_equivalent_manifest_is_no_identity_change(api):
    """Defaults may be left out, 1.0 may be 1, and fields may be in any order."""
    full = manifest(sampling={"temperature": 1.0})
    short = {
        name: value for name, value in reversed(full.items()) if name not in ("retry", "schema")
    }
    assert submit(
        api,
        "Simulator",
        identity_spec(manifest=full),
        identity_spec(manifest=short | {"sampling": {"temperature": 1}}),
    ).is_success


def test_the_identity_rule_compares_a_manifest_of_maximum_size(api):
    """The server stops a rule that costs too much, and would refuse every change with it."""
    names = [f"{'part' * 12}-{number:06}.safetensors" for number in range(7000)]
    files = dict.fromkeys(names, records.digest("weights"))
    large = manifest(files=files, domains=records.pinned_domains(system_prompt="x" * 300_000))
    new_spec = identity_spec(manifest=large) | {"serving": {"replicas": 2}}
    assert len(json.dumps(new_spec)) > 1_200_000
    answer = submit(api, "Simulator", identity_spec(manifest=large), new_spec)
    assert answer.is_success, answer.text[:500]
