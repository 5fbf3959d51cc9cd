"""Runs a declared step."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest, Record
from agentworld.runner.declaration import Step
from agentworld.runner.remote import on_store
from agentworld.runner.step import folder_of, output_of, run_step
from agentworld.runner.task import Plan, Planner, Task


class _StepPlan(NamedTuple):
    """A step before it runs: its plan, and what its result depends on."""

    store: Path
    plan: Plan
    recipe: Sequence[Record]
    inputs: dict[str, Digest]
    reads: Sequence[Path]


@on_store
def run_planned(step: Step, planner: Planner, recipe: str, store: str, *arguments: str) -> str:
    """The folder of the step's result; raises InputError for invalid arguments.

    The store may be a URL, and each of the arguments a folder in it.
    """
    step_plan = _plan(step, planner, recipe, store, arguments)
    folder = run_step(
        step_plan.store,
        step.name,
        step_plan.recipe,
        step_plan.inputs,
        step_plan.plan.work,
        check=step_plan.plan.check,
        reads=step_plan.reads,
        domains=step_plan.plan.domains,
    )
    return str(step_plan.plan.answer(folder))


def planned_folder(step: Step, planner: Planner, recipe: str, store: str, *arguments: str) -> Path:
    """The folder of the step's result for these arguments, finished or not."""
    step_plan = _plan(step, planner, recipe, store, arguments)
    return folder_of(
        step_plan.store,
        step.name,
        step_plan.recipe,
        step_plan.inputs,
        domains=step_plan.plan.domains,
    )


def _plan(
    step: Step, planner: Planner, recipe: str, store: str, arguments: Sequence[str]
) -> _StepPlan:
    settings = load_recipe(recipe_path(recipe))
    values = step.bind((recipe, store, *arguments))
    paths = {
        step_input.name: values.pop(step_input.name)
        for step_input in step.inputs
        if step_input.step
    }
    folders = {name: Path(path) for name, path in paths.items() if path}
    digests = {name: output_of(str(folder)) for name, folder in folders.items()}
    task = Task(settings, Path(store), folders, digests, values)
    plan = planner(task)
    reads = [
        folders[step_input.name]
        for step_input in step.inputs
        if step_input.reads_files and step_input.name in folders
    ]
    inputs = {**digests, **plan.inputs}
    return _StepPlan(task.store, plan, step.recipe(task.recipe), inputs, reads)
