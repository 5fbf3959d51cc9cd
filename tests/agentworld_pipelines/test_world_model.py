import re
from collections.abc import Iterator
from itertools import combinations, pairwise

import pytest

import make.pipelines
from agentworld.errors import InputError
from agentworld.recipes import load_recipe, recipe_path
from agentworld.recipes.traces import TracesRecipe
from agentworld.steps.table import MAIN_JOB, steps_of
from agentworld_pipelines.compile import PIPELINES, compile_pipeline
from agentworld_pipelines.world_model import all_stages
from make.pipelines import PLACEMENT, Compiled

pytestmark = pytest.mark.compute

INPUTS = {
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
}
AGENT_INPUTS = {
    "collect": set(),
    "imitate": {"collect"},
    "open_run": {"imitate"},
    "agent": {"imitate", "open_run"},
    "close_run": {"agent"},
    "validate": {"imitate", "agent"},
    "register_agent": {"agent", "close_run", "validate"},
    "audit": {"register_agent", "validate"},
}
GATED_STEPS = {"register", "simulate", "deploy"}


@pytest.fixture(scope="module")
def pipeline() -> Compiled:
    return make.pipelines.compiled("world_model")


@pytest.mark.parametrize("name", PIPELINES)
def test_each_pipeline_has_exactly_its_declared_steps_and_conclude(name):
    assert set(make.pipelines.compiled(name).containers) == {*steps_of(name), "conclude"}


@pytest.fixture(scope="module")
def agent() -> Compiled:
    return make.pipelines.compiled("agent")


def inputs_of(task: dict) -> Iterator[str]:
    """The steps whose results a task reads, also from outside of its condition."""
    for item in task.get("inputs", {}).get("parameters", {}).values():
        if "taskOutputParameter" in item:
            yield item["taskOutputParameter"]["producerTask"].replace("-", "_")
        match = re.fullmatch(r"pipelinechannel--(\w+)-\w+", item.get("componentInputParameter", ""))
        if match:
            yield match[1]


def test_the_world_model_and_agent_pipelines_have_exactly_the_steps_of_the_main_job(
    pipeline, agent
):
    assert set(pipeline.containers) == {*INPUTS, "conclude"}
    assert set(agent.containers) == {*AGENT_INPUTS, "conclude"}
    assert set(INPUTS | AGENT_INPUTS) == set(MAIN_JOB)


def test_a_step_reads_the_results_of_its_predecessors(pipeline, agent):
    for compiled, inputs in ((pipeline, INPUTS), (agent, AGENT_INPUTS)):
        assert {step: set(inputs_of(compiled.tasks[step])) for step in inputs} == inputs


CHAINS = [chain for length in (1, 2, 3) for chain in combinations(("cpt", "sft", "rl"), length)]


@pytest.mark.parametrize("chain", CHAINS, ids="-".join)
def test_any_selected_stages_form_a_chain_that_begins_at_the_base(chain):
    compiled = make.pipelines.compiled("world_model", stages=chain)
    other_stages = {"cpt", "sft", "rl"} - {*chain}
    assert set(compiled.containers) == {*INPUTS, "conclude"} - other_stages
    for parent, stage in pairwise(("prepare", *chain)):
        assert set(inputs_of(compiled.tasks[stage])) == {"prepare", parent}
    assert set(inputs_of(compiled.tasks["evaluate"])) == {"prepare", *chain}
    assert set(inputs_of(compiled.tasks["register"])) == {"evaluate", *chain}


@pytest.mark.parametrize("chain", [chain for chain in CHAINS if "sft" in chain], ids="-".join)
def test_selected_traces_are_a_step_between_the_data_and_sft(chain):
    compiled = make.pipelines.compiled("world_model", stages=("traces", *chain))
    assert {"traces"} == set(compiled.containers) - {*INPUTS, "conclude"}
    assert set(inputs_of(compiled.tasks["traces"])) == {"prepare"}
    parents = {"cpt"} & {*chain}
    assert set(inputs_of(compiled.tasks["sft"])) == {"prepare", "traces", *parents}
    for stage in {*chain} - {"sft"}:
        assert "traces" not in inputs_of(compiled.tasks[stage])
    assert set(inputs_of(compiled.tasks["evaluate"])) == {"prepare", *chain}


def test_a_recipe_with_a_teacher_has_traces_before_its_stages():
    recipe = load_recipe(recipe_path("demo"))
    assert all_stages(recipe) == ["cpt", "sft", "rl"]
    traced_recipe = recipe.model_copy(update={"traces": TracesRecipe()})
    assert all_stages(traced_recipe) == ["traces", "cpt", "sft", "rl"]


@pytest.mark.parametrize(
    "stages",
    [("sft", "cpt"), ("cpt", "cpt"), ("pre",), ("traces",), ("traces", "cpt"), ("sft", "traces")],
)
def test_stages_that_are_no_chain_are_refused(tmp_path, stages):
    with pytest.raises(InputError, match="is no chain of stages; give some of cpt, sft, rl"):
        compile_pipeline(tmp_path / "pipeline.yaml", stages=stages)


def test_other_pipelines_accept_no_stages(tmp_path):
    with pytest.raises(InputError, match="the pipeline agent trains no stages of a world model"):
        compile_pipeline(tmp_path / "pipeline.yaml", "agent", stages=("sft",))


def test_the_main_job_lists_every_step_after_its_predecessors():
    order = {step: index for index, step in enumerate(MAIN_JOB)}
    for inputs in (INPUTS, AGENT_INPUTS):
        for step, parents in inputs.items():
            assert all(order[parent] < order[step] for parent in parents)


def test_a_run_is_concluded_after_success_and_after_failure(pipeline, agent):
    for compiled, name in ((pipeline, "world_model"), (agent, "agent")):
        tasks = compiled.spec["root"]["dag"]["tasks"]
        assert set(tasks) == {"exit-handler-1", "conclude"}
        conclusion = tasks["conclude"]
        assert conclusion["triggerPolicy"] == {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}
        parameters = conclusion["inputs"]["parameters"]
        assert parameters["pipeline"]["runtimeValue"]["constant"] == name
        assert parameters["status"] == {"taskFinalStatus": {"producerTask": "exit-handler-1"}}


def test_a_world_model_refused_by_the_gate_is_neither_registered_nor_deployed(pipeline):
    assert set(pipeline.spec["components"]["comp-condition-2"]["dag"]["tasks"]) == GATED_STEPS
    task = pipeline.tasks["condition_2"]
    assert "gate" in task["dependentTasks"]
    verdict = "inputs.parameter_values['pipelinechannel--gate-Output']"
    assert task["triggerPolicy"] == {"condition": f"{verdict} == 'passed'"}


def test_the_gate_outputs_its_verdict_and_its_reason(pipeline):
    parameters = pipeline.spec["components"]["comp-gate"]["outputDefinitions"]["parameters"]
    assert set(parameters) == {"folder", "Output", "reason"}


@pytest.mark.parametrize(("placement", "target"), [(None, ""), (PLACEMENT, PLACEMENT.target)])
def test_the_step_deploy_gets_the_target_of_its_placement(placement, target):
    task = make.pipelines.compiled("world_model", placement).tasks["deploy"]
    assert task["inputs"]["parameters"]["place"] == {"runtimeValue": {"constant": target}}


def test_the_world_model_pipeline_takes_a_recipe_and_a_store(pipeline):
    assert set(pipeline.spec["root"]["inputDefinitions"]["parameters"]) == {"recipe", "store"}
