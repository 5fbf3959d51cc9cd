"""The shipped placement for one GPU, with the recipe that ends in a served Simulator.

`agentworld_operator/test_deploying.py` tests the result of its step `deploy`.
"""

import re
from pathlib import Path

import pytest

import make.pipelines
from agentworld.recipes import load_recipe, recipe_path
from agentworld.steps.table import names_of
from agentworld_pipelines.compile import arguments_for
from agentworld_pipelines.placement import Nodes, load_placement
from agentworld_pipelines.step_job import stage_job, step_job
from fakes import kfp_security
from machines.kubernetes_types import check
from machines.pod_standards import level_of
from make.pipelines import ROOT, Compiled

pytestmark = pytest.mark.compute

PLACEMENT = load_placement(ROOT / "docs/guides/placements/one-gpu.yaml")
NAME, STORE = "qwen3-0.6b-shell", "/stores/shell"
RECIPE = load_recipe(recipe_path(NAME))
GPU_STEPS = {"cpt", "sft", "rl", "evaluate"}
IMAGE = re.compile(r"mirror\.example/agentworld/(train|train-vllm)@sha256:[0-9a-f]{64}")


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return make.pipelines.compiled("world_model", PLACEMENT)


def test_every_pod_has_its_place_mounts_the_store_and_meets_restricted(compiled):
    for step in compiled.containers:
        place = compiled.place(step)
        assert place == PLACEMENT.of(step).own_pod
        assert STORE.startswith(f"{place.volumes['agentworld-stores']}/")
        assert level_of(kfp_security.pod(compiled.pod(step))) == "restricted"


def test_each_image_has_a_digest_and_only_evaluate_uses_the_vllm_image(compiled):
    images = {step: IMAGE.fullmatch(compiled.place(step).image) for step in compiled.containers}
    assert all(images.values())
    vllm_steps = {step for step, image in images.items() if image and image[1] == "train-vllm"}
    assert vllm_steps == {"evaluate"}
    targets = re.findall(r"^FROM .* AS (.*)$", (ROOT / "Dockerfile").read_text(), re.M)
    assert {"train", "train-vllm"} <= {*targets}


def test_only_steps_that_train_or_query_a_model_get_one_gpu(compiled):
    places = {
        step: compiled.taken_along(step) or compiled.place(step) for step in compiled.containers
    }
    assert {step for step, place in places.items() if place.accelerator} == GPU_STEPS
    for step in GPU_STEPS:
        place = places[step]
        assert (place.accelerator.type, place.accelerator.count) == ("nvidia.com/gpu", 1)
        assert [taint.key for taint in place.tolerations] == ["nvidia.com/gpu"]


def test_the_live_step_gets_a_valid_job_with_its_place(compiled):
    (live,) = {*names_of("live")} & {*compiled.containers}
    place = compiled.taken_along(live)
    assert place == PLACEMENT.of(live)
    job = step_job("a-job", live, [NAME, STORE], place)
    check(job)
    assert level_of(job["spec"]["template"]["spec"]) == "baseline"


@pytest.mark.parametrize("stage", names_of("training"))
def test_a_stage_gets_a_job_with_the_gpu_and_time_for_a_checkpoint(compiled, stage):
    place = compiled.taken_along(stage)
    assert place == PLACEMENT.of(stage)
    assert place.nodes == Nodes(count=1)
    job = stage_job(stage, [NAME, STORE], Path(STORE) / "steps" / stage, place)
    check(job)
    pod = job["spec"]["template"]["spec"]
    assert level_of(pod) == "restricted"
    assert pod["terminationGracePeriodSeconds"] == 330
    assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1", "memory": "64Gi"}
    own_pod = compiled.place(stage)
    assert (own_pod.accelerator, own_pod.tolerations, own_pod.requests.memory) == (
        None,
        (),
        "512Mi",
    )


def test_pods_find_the_recipe_and_a_cluster_can_serve_its_model(compiled):
    arguments = {"recipe": NAME, "store": STORE}
    assert arguments_for("world_model", arguments) == arguments
    assert RECIPE.engine.kind == "vllm"
    assert RECIPE.gate
    assert {gate.metric.partition(".")[0] for gate in RECIPE.gate} == {"rl"}
    target = compiled.tasks["deploy"]["inputs"]["parameters"]["place"]
    assert target["runtimeValue"]["constant"] == PLACEMENT.target


def test_the_stages_equal_those_of_the_recipe_for_recordings():
    """`train/test_shipped_recipes.py` trains them from a base of its family."""
    other = load_recipe(recipe_path("qwen3-0.6b"))
    assert (RECIPE.model, RECIPE.cpt, RECIPE.sft) == (other.model, other.cpt, other.sft)
