"""Runs a step by its name."""

from importlib import import_module
from pathlib import Path

from agentworld.runner.run import planned_folder, run_planned
from agentworld.runner.task import Planner
from agentworld.steps.table import STEPS


def run_by_name(step: str, recipe: str, store: str, *arguments: str) -> str:
    """The folder of a step's result, new or reused; the step's declaration lists its arguments."""
    return run_planned(STEPS[step], _planner_of(step), recipe, store, *arguments)


def folder_for(step: str, recipe: str, store: str, *arguments: str) -> Path:
    """The folder that a step fills with these arguments, finished or not."""
    return planned_folder(STEPS[step], _planner_of(step), recipe, store, *arguments)


def _planner_of(step: str) -> Planner:
    planner: Planner = import_module(f"agentworld.steps.{step}").plan
    return planner
