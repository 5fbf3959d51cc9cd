"""A step's placement, read back from the compiled pipeline."""

import re
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import make.pipelines
from agentworld_pipelines.compile import PIPELINES
from agentworld_pipelines.components import IMAGE
from agentworld_pipelines.placement import Place, Placement
from agentworld_pipelines.step_job import step_job
from machines.kubernetes_types import check
from make.pipelines import PLACEMENT, ROOT, Compiled

pytestmark = pytest.mark.compute

NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
KEYS = st.from_regex(r"([a-z]{1,9}\.[a-z]{1,3}/)?[A-Za-z]([\w.-]{0,9}[a-z0-9])?", fullmatch=True)
LABELS = st.dictionaries(
    KEYS.filter(str.isascii), st.from_regex(r"([A-Za-z0-9]{1,9})?", fullmatch=True), max_size=3
)
VARIABLES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,9}", fullmatch=True)
CORES = st.from_regex(r"[1-9][0-9]{0,2}(m|\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9]", fullmatch=True)
BYTES = st.from_regex(r"[1-9][0-9]{0,5}[MGT]i?", fullmatch=True)
PATHS = st.from_regex(r"(/[a-z0-9_.-]{1,9}){1,3}", fullmatch=True)
NIGHTLY_STEPS = ("measure", "conclude")
"""The steps of the pipeline that compiles soonest: one that takes its place along, and one not."""
SECONDS = st.integers(1, 10**7)
RESOURCES = st.fixed_dictionaries({}, optional={"cpu": CORES, "memory": BYTES})
TOLERATIONS = st.one_of(
    st.just({"operator": "Exists"}),
    st.fixed_dictionaries(
        {"key": NAMES},
        optional={"value": NAMES, "effect": st.sampled_from(["NoSchedule", "PreferNoSchedule"])},
    ),
    st.fixed_dictionaries(
        {"key": NAMES, "effect": st.just("NoExecute"), "toleration_seconds": SECONDS | st.just(0)}
    ),
)
PLACES = st.fixed_dictionaries(
    {},
    optional={
        "image": st.none() | st.just("mine:2"),
        "node_selector": LABELS,
        "tolerations": st.lists(TOLERATIONS, max_size=3),
        "accelerator": st.none()
        | st.fixed_dictionaries({"type": st.just("nvidia.com/gpu"), "count": st.integers(1, 16)}),
        "requests": RESOURCES,
        "limits": RESOURCES,
        "shared_memory": st.none() | BYTES,
        "scratch": st.none() | BYTES,
        "volumes": st.dictionaries(NAMES, PATHS, max_size=3),
        "secrets": st.dictionaries(
            NAMES, st.dictionaries(NAMES, VARIABLES, max_size=3), max_size=2
        ),
        "environment": st.dictionaries(VARIABLES, st.text("ab %=:\"'\n\u00e9{}$", max_size=20)),
        "queue": st.none() | NAMES,
        "priority_class": st.none() | NAMES,
        "labels": LABELS,
        "image_pull_secrets": st.lists(NAMES, max_size=2),
        "retries": st.none()
        | st.fixed_dictionaries(
            {"times": st.integers(1, 5)},
            optional={
                "wait_seconds": st.integers(0, 100),
                "factor": st.integers(1, 4),
                "most_seconds": st.integers(40_000, 10**7),  # all waits fit
            },
        ),
    },
)
ACCOUNTS = st.fixed_dictionaries({}, optional={"service_account": st.none() | NAMES})
"""Only for the default: not every step can have its own."""
PLACEMENTS = st.fixed_dictionaries(
    {"default": st.builds(dict.__or__, PLACES, ACCOUNTS)},
    optional={"steps": st.dictionaries(st.sampled_from(NIGHTLY_STEPS), PLACES)},
)


def compile_placed(name: str) -> Compiled:
    """A pipeline with a placement that sets every field."""
    return make.pipelines.compiled(name, PLACEMENT)


@pytest.mark.parametrize("name", PIPELINES)
def test_every_step_gets_its_place_from_the_placement(name):
    compiled = compile_placed(name)
    for step in compiled.containers:
        assert compiled.place(step) == PLACEMENT.of(step).own_pod


@pytest.mark.parametrize("name", PIPELINES)
def test_a_steps_process_gets_its_retries_and_argo_an_integer_factor(name):
    compiled = compile_placed(name)
    for step in compiled.containers:
        assert compiled.own_retries(step) == PLACEMENT.of(step).retries
        policy = compiled.tasks[step].get("retryPolicy", {"backoffFactor": 1})
        assert float(policy["backoffFactor"]).is_integer()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("world_model", {"collect", "cpt"}),
        ("agent", {"collect", "validate"}),
        ("nightly", {"measure"}),
    ],
)
def test_only_steps_run_by_other_pods_get_their_place_as_an_argument(name, expected):
    compiled = compile_placed(name)
    places = {step: compiled.taken_along(step) for step in compiled.containers}
    assert {step for step, place in places.items() if place} == expected
    for step in expected:
        assert places[step] == PLACEMENT.of(step)
        assert places[step].image == PLACEMENT.image


def test_a_step_that_runs_on_this_machine_gets_no_place_argument():
    spec = PIPELINES["agent"](None).pipeline_spec
    tasks = spec.components["comp-exit-handler-1"].dag.tasks
    assert set(tasks["collect"].inputs.parameters) == {"recipe", "store"}


def test_pods_for_a_store_in_a_bucket_mount_no_claim():
    fields = {
        "image": "mirror.example/agentworld:7",
        "default": {
            "scratch": "200Gi",
            "secrets": {"bucket": {"key": "AWS_ACCESS_KEY_ID"}},
            "environment": {"AWS_ENDPOINT_URL": "https://buckets.example"},
        },
        "deploy": {"image": "mirror.example/vllm", "secret": "bucket"},
    }
    placement = Placement.model_validate(fields)
    compiled = make.pipelines.compiled("world_model", placement)
    for step in compiled.containers:
        assert "pvcMount" not in compiled.pod(step)
        assert compiled.place(step) == placement.of(step)
    assert compiled.taken_along("collect") == placement.of("collect")
    target = compiled.tasks["deploy"]["inputs"]["parameters"]["place"]["runtimeValue"]["constant"]
    assert '"claim":null,"secret":"bucket"' in target


def test_a_pod_that_only_follows_several_nodes_requests_few_resources():
    compiled = compile_placed("world_model")
    place, training_place = compiled.place("cpt"), PLACEMENT.of("cpt")
    assert (place.accelerator, place.queue, place.node_selector) == (None, None, {})
    assert place.requests.memory == "512Mi"
    assert place.limits.model_fields_set == place.requests.model_fields_set  # for a quota
    assert (place.volumes, place.secrets) == (training_place.volumes, training_place.secrets)
    assert place.labels == training_place.labels != {}  # it reads the same bucket
    assert place.scratch is None


@given(PLACEMENTS)
@settings(max_examples=20, deadline=None)
def test_any_placement_compiles_and_every_step_gets_its_place(placement_fields: dict[str, Any]):
    places = [placement_fields["default"], *placement_fields.get("steps", {}).values()]
    merged = [Place.model_validate({**placement_fields["default"], **place}) for place in places]
    assume(not any(place.duplicates for place in merged))
    placement = Placement.model_validate(placement_fields)
    compiled = make.pipelines.compiled("nightly", placement)
    for step in NIGHTLY_STEPS:
        assert compiled.place(step) == placement.of(step).own_pod
        text = placement.of(step).model_dump_json(exclude_defaults=True)
        assert Place.model_validate_json(text) == placement.of(step)
        if job_place := compiled.taken_along(step):
            image = {"image": placement.of(step).image or IMAGE}
            assert job_place == placement.of(step).model_copy(update=image)
            check(step_job("a-name", step, ["demo", "/stores"], job_place))


def test_the_placement_for_spot_nodes_sets_the_retries_of_its_steps():
    guide = (ROOT / "docs/guides/spot.md").read_text()
    (text,) = re.findall(r"^```yaml\n(.*?)^```", guide, re.M | re.S)
    placement = Placement.model_validate(yaml.safe_load(text))
    compiled = make.pipelines.compiled("world_model", placement)
    assert {step for step in compiled.containers if compiled.own_retries(step)} == {
        *placement.steps
    }


@pytest.mark.parametrize("page", ["several-nodes", "mlflow"])
def test_the_placement_shown_on_a_guide_page_applies_to_cpt(page):
    guide = (ROOT / f"docs/guides/{page}.md").read_text()
    text, *_ = re.findall(r"^```yaml\n(.*?)^```", guide, re.M | re.S)
    placement = Placement.model_validate({"image": "train", **yaml.safe_load(text)})
    compiled = make.pipelines.compiled("world_model", placement)
    assert compiled.place("cpt") == placement.of("cpt").own_pod


def test_the_placement_of_the_pipelines_guide_sets_every_field_and_is_applied():
    guide = (ROOT / "docs/guides/pipelines.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```", guide, re.M | re.S)
    deploy, _, rest, *_ = map(yaml.safe_load, blocks)
    placement = Placement.model_validate(rest | deploy)
    compiled = make.pipelines.compiled("world_model", placement)
    for step in compiled.containers:
        assert compiled.place(step) == placement.of(step).own_pod
    places = [placement.default, *placement.steps.values()]
    assert {name for place in places for name in place.model_fields_set} == set(Place.model_fields)
    assert placement.deploy
    fields = placement.deploy.model_fields_set
    # There are bounds, and a claim.
    assert fields == set(type(placement.deploy).model_fields) - {"replicas", "secret", "cache"}
