import re
from collections.abc import Iterator

import pytest

import make_pipelines
from agentworld.steps import STEPS
from make_pipelines import PLACEMENT, Compiled

pytestmark = pytest.mark.slow

READS = {
    "collect": set(),
    "prepare": {"collect"},
    "cpt": {"prepare"},
    "sft": {"prepare", "cpt"},
    "rl": {"prepare", "sft"},
    "evaluate": {"prepare", "cpt", "sft", "rl"},
    "gate": {"evaluate"},
    "register": {"cpt", "sft", "rl", "evaluate"},
    "simulate": {"register"},
    "deploy": {"simulate"},
    "agent": {"collect", "simulate"},
    "validate": {"simulate", "agent"},
    "audit": {"agent", "validate"},
}
GATED = {"register", "simulate", "deploy", "agent", "validate", "audit"}


@pytest.fixture(scope="module")
def pipeline() -> Compiled:
    return make_pipelines.compiled("world_model")


def read_by(task: dict) -> Iterator[str]:
    """The steps whose results a task takes, also from outside of its condition."""
    for told in task.get("inputs", {}).get("parameters", {}).values():
        if "taskOutputParameter" in told:
            yield told["taskOutputParameter"]["producerTask"]
        elif found := re.fullmatch(
            r"pipelinechannel--(\w+)-\w+", told.get("componentInputParameter", "")
        ):
            yield found[1]


def test_the_pipeline_has_the_steps_and_no_others(pipeline):
    assert set(pipeline.containers) == set(STEPS)


def test_a_step_reads_what_its_predecessors_made(pipeline):
    assert {step: set(read_by(pipeline.tasks[step])) for step in STEPS} == READS


def test_every_step_comes_after_what_it_waits_for():
    order = {step: place for place, step in enumerate(STEPS)}
    for step, before in READS.items():
        assert all(order[each] < order[step] for each in before)


def test_a_world_model_that_the_gate_refuses_goes_no_further(pipeline):
    assert set(pipeline.spec["components"]["comp-condition-1"]["dag"]["tasks"]) == GATED
    task = pipeline.spec["root"]["dag"]["tasks"]["condition-1"]
    assert "gate" in task["dependentTasks"]
    verdict = "inputs.parameter_values['pipelinechannel--gate-Output']"
    assert task["triggerPolicy"] == {"condition": f"{verdict} == 'passed'"}


def test_the_gate_says_its_verdict_and_its_reason(pipeline):
    told = pipeline.spec["components"]["comp-gate"]["outputDefinitions"]["parameters"]
    assert set(told) == {"folder", "Output", "reason"}


@pytest.mark.parametrize(("placement", "target"), [(None, ""), (PLACEMENT, PLACEMENT.target)])
def test_the_step_deploy_is_told_the_target_of_its_placement(placement, target):
    task = make_pipelines.compiled("world_model", placement).tasks["deploy"]
    assert task["inputs"]["parameters"]["target"] == {"runtimeValue": {"constant": target}}


def test_it_takes_a_recipe_and_a_store(pipeline):
    assert set(pipeline.spec["root"]["inputDefinitions"]["parameters"]) == {"recipe", "store"}
