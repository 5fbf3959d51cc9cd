"""The declarations of the steps match their modules and each other."""

import inspect
from importlib import import_module
from pathlib import Path

import pytest

from agentworld.errors import InputError
from agentworld.recipes import load_recipe, recipe_path
from agentworld.recipes.endpoint import EndpointRecipe
from agentworld.records.base import Record
from agentworld.runner import code
from agentworld.runner.task import Plan, Task
from agentworld.steps.table import MAIN_JOB, STEPS, steps_of

pytestmark = pytest.mark.compute


@pytest.mark.parametrize("name", STEPS)
def test_the_module_of_each_step_has_a_plan_function(name):
    plan = inspect.signature(import_module(f"agentworld.steps.{name}").plan)
    assert [parameter.annotation for parameter in plan.parameters.values()] == [Task]
    assert plan.return_annotation is Plan


@pytest.mark.parametrize("name", STEPS)
def test_the_code_reached_by_a_step_excludes_the_step_table(name):
    modules: dict[str, Path | None] = {}
    code._reach(f"agentworld.steps.{name}", modules, set())
    names = {path.relative_to(code._PACKAGE).as_posix() for path in modules.values() if path}
    assert f"steps/{name}.py" in names
    assert names & {"steps/table.py", "runner/declaration.py", "runner/run.py"} == set()


@pytest.mark.parametrize("name", STEPS)
def test_a_step_declares_a_part_of_the_recipe(name):
    parts = STEPS[name].recipe(load_recipe(recipe_path("demo")))
    assert all(isinstance(part, Record) for part in parts)


@pytest.mark.parametrize("name", STEPS)
def test_worker_counts_and_data_addresses_are_not_part_of_a_step(name):
    recipe = load_recipe(recipe_path("demo"))
    collect = {"num_workers": 7, "trajectories": "s3://user:password@bucket/logs"}
    prepare = {"num_workers": 7, "benchmarks": ("s3://user:password@bucket/bench",)}
    other = recipe.model_copy(
        update={
            "collect": recipe.collect.model_copy(update=collect),
            "prepare": recipe.prepare.model_copy(update=prepare),
        }
    )
    assert STEPS[name].recipe(other) == STEPS[name].recipe(recipe)


@pytest.mark.parametrize("name", ["rl", "evaluate"])
def test_a_step_depends_on_the_judge_model_and_not_on_the_judge_address(name):
    recipe = load_recipe(recipe_path("demo"))

    def part(**fields):
        judge = EndpointRecipe(**fields)
        reward = recipe.rl.reward.model_copy(update={"endpoint": judge})
        changes = {
            "rl": recipe.rl.model_copy(update={"reward": reward}),
            "evaluate": recipe.evaluate.model_copy(update={"judge": judge}),
        }
        return STEPS[name].recipe(recipe.model_copy(update=changes))

    other = {"url": "http://judge", "key_from": "JUDGE_KEY", "concurrency": 1, "timeout_seconds": 9}
    assert part(**other) == part() != part(model="another")


def test_every_step_reads_only_earlier_steps():
    order = list(STEPS)
    for step in STEPS.values():
        for source in step.inputs:
            assert not source.step or order.index(source.step) < order.index(step.name)
            assert source.step or source.help
            assert source.step or not source.reads_files


def test_the_main_job_is_the_world_model_pipeline_followed_by_the_agent_pipeline():
    world_model, agent = steps_of("world_model"), steps_of("agent")
    assert (*world_model, *(step for step in agent if step not in world_model)) == MAIN_JOB


@pytest.mark.parametrize(
    ("words", "inputs"),
    [
        (("demo", "store", "a", "b"), {"imitated": "a", "agent": "b", "simulator": ""}),
        (("demo", "store", "a", "b", "c"), {"imitated": "a", "agent": "b", "simulator": "c"}),
    ],
)
def test_arguments_are_bound_to_the_declared_input_names_of_a_step(words, inputs):
    assert STEPS["validate"].bind(words) == inputs


@pytest.mark.parametrize("num", [0, 1, 3, 6])
def test_a_wrong_number_of_arguments_raises_an_error_with_the_usage(num):
    usage = f"validate takes RECIPE STORE IMITATED AGENT SIMULATOR, not {num} arguments"
    with pytest.raises(InputError, match=usage):
        STEPS["validate"].bind(["word"] * num)
