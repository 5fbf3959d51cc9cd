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
    """Specs; where the rule is about a change, of what is there before too."""

    accepted: tuple[Spec, ...]
    refused: tuple[Spec, ...]
    before: Spec | None = None


def manifest(seed: str = "one", **fields: object) -> Spec:
    return json.loads(pinned_manifest(seed, **fields).canonical)


def reference(seed: str = "one") -> Spec:
    return {"url": f"s3://simulators/{seed}", "digest": records.digest(seed)}


def spec(**serving: object) -> Spec:
    return {"identity": {"reference": reference()}, "serving": serving}


def tolerating(**toleration: object) -> Spec:
    return spec(nodePool={"tolerations": [toleration]})


def every(cron: str = "0 3 * * *", store: str = "/store") -> Spec:
    return schedule(cron=cron, store=store)["spec"]


def identified(**identity: object) -> Spec:
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
            before=identified(manifest=manifest()),
            accepted=(
                identified(manifest=manifest()),
                identified(manifest=manifest()) | {"serving": {"replicas": 3, "suspend": True}},
            ),
            refused=(
                identified(manifest=manifest("two")),
                identified(manifest=manifest(artifact=records.digest("another"))),
                identified(manifest=manifest(files={})),
                identified(manifest=manifest(sampling={"max_tokens": 255})),
                identified(reference=reference()),
            ),
        ),
        Case(
            before=identified(reference=reference()),
            accepted=(spec(replicas=0, image="registry.example/vllm"),),
            refused=(
                identified(reference=reference("two")),
                identified(reference=reference() | {"url": "s3://elsewhere"}),
                identified(manifest=manifest()),
            ),
        ),
    ),
    ONE_IDENTITY: (
        Case(
            accepted=(identified(manifest=manifest()), identified(reference=reference())),
            refused=({"identity": {}}, identified(manifest=manifest(), reference=reference())),
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
                tolerating(key="gpu", operator="Exists"),
                tolerating(key="gpu", operator="Exists", value=""),
                tolerating(key="gpu", value="yes"),
            ),
            refused=(tolerating(key="gpu", operator="Exists", value="yes"),),
        ),
    ),
    ANY_KEY: (
        Case(
            accepted=(tolerating(operator="Exists"), tolerating(key="gpu")),
            refused=(tolerating(), tolerating(operator="Equal", value="yes")),
        ),
    ),
    SENDS_AWAY: (
        Case(
            accepted=(tolerating(key="gpu", effect="NoExecute", tolerationSeconds=0),),
            refused=(
                tolerating(key="gpu", tolerationSeconds=3),
                tolerating(key="gpu", effect="NoSchedule", tolerationSeconds=3),
            ),
        ),
    ),
    FIVE_FIELDS: (
        Case(
            accepted=tuple(map(every, ("0 3 * * *", "*/5  1-3 ? jan mon-fri", " 0 3 * * * "))),
            refused=tuple(map(every, ("0 3 * *", "0 0 3 * * *", "@daily", "0 3 * * *\n1", " "))),
        ),
    ),
    FOR_EVERY_POD: (
        Case(
            accepted=tuple(every(store=each) for each in ("/store", "/", "s3://worlds/store")),
            refused=tuple(every(store=each) for each in ("store", "./store")),
        ),
    ),
}


def cases(which: str) -> list[Any]:
    return [
        pytest.param(rule, case.before, each, id=f"{rule.path}-{rule.message[:9]}-{which}{number}")
        for rule, all_of_rule in CASES.items()
        for number, (case, each) in enumerate(
            (case, each) for case in all_of_rule for each in getattr(case, which)
        )
    ]


def test_every_rule_of_the_definitions_is_tested_here():
    told = [
        Rule(node.kind, ".".join(node.path), rule["message"])
        for node in nodes()
        for rule in node.schema.get("x-kubernetes-validations", ())
    ]
    assert sorted(told) == sorted(CASES)
    for all_of_rule in CASES.values():
        assert all(case.accepted and case.refused for case in all_of_rule)


def asked(api: Api, kind: str, before: Spec | None, then: Spec) -> Any:
    """The response to a spec, as an update of an earlier one if there is one."""
    made = {**type_fields(kind), "metadata": {"name": "tried"}}
    if before is None:
        return api.create(made | {"spec": then}, **DRY)
    api.create(made | {"spec": before}).raise_for_status()
    try:
        return api.replace(made | {"spec": then}, **DRY)
    finally:
        api.delete(made)


@pytest.mark.parametrize(("rule", "before", "then"), cases("accepted"))
def test_a_spec_that_meets_a_rule_is_accepted(api, rule, before, then):
    answer = asked(api, rule.kind, before, then)
    assert answer.is_success, answer.text


@pytest.mark.parametrize(("rule", "before", "then"), cases("refused"))
def test_a_spec_that_breaks_a_rule_is_refused_with_field_and_remedy(api, rule, before, then):
    answer = asked(api, rule.kind, before, then)
    assert answer.status_code == 422, answer.text
    told, field = answer.json(), rule.path.replace(".[]", "[0]")
    assert told["message"].endswith(f"{field}: Invalid value: {rule.message}")
    assert [cause["field"] for cause in told["details"]["causes"]] == [field]


def test_a_patch_of_the_status_does_not_change_the_identity(api):
    made = {**type_fields("Simulator"), "metadata": {"name": "patched"}, "spec": spec()}
    api.create(made).raise_for_status()
    changed = {"status": {"replicas": 2}, "spec": identified(reference=reference("two"))}
    api.patch("Simulator", "patched", changed, "status").raise_for_status()
    kept = api.get("Simulator", "patched")
    api.delete(made)
    assert kept["status"]["replicas"] == 2
    assert kept["spec"]["identity"]["reference"] == reference()


def test_an_identity_cannot_be_removed(api):
    made = {**type_fields("Simulator"), "metadata": {"name": "stripped"}, "spec": spec()}
    api.create(made).raise_for_status()
    gone = api.patch("Simulator", "stripped", {"spec": {"identity": None}})
    emptied = api.patch("Simulator", "stripped", {"spec": {"identity": {"reference": None}}})
    api.delete(made)
    assert "spec.identity: Required value" in gone.json()["message"]
    assert IMMUTABLE.message in emptied.json()["message"]


def test_an_equivalent_manifest_is_no_identity_change(api):
    """Defaults may be left out, 1.0 may be 1, and fields may be in any order."""
    told = manifest(sampling={"temperature": 1.0})
    short = {name: each for name, each in reversed(told.items()) if name not in ("retry", "schema")}
    assert asked(
        api,
        "Simulator",
        identified(manifest=told),
        identified(manifest=short | {"sampling": {"temperature": 1}}),
    ).is_success


def test_the_identity_rule_compares_a_manifest_of_maximum_size(api):
    """The server stops a rule that costs too much, and would refuse every change with it."""
    names = [f"{'part' * 12}-{number:06}.safetensors" for number in range(7000)]
    files = dict.fromkeys(names, records.digest("weights"))
    large = manifest(files=files, domains=records.pinned_domains(system_prompt="x" * 300_000))
    then = identified(manifest=large) | {"serving": {"replicas": 2}}
    assert len(json.dumps(then)) > 1_200_000
    answer = asked(api, "Simulator", identified(manifest=large), then)
    assert answer.is_success, answer.text[:500]
