"""A teacher writes thoughts and observations for SFT, and a judge selects them."""

from pathlib import Path

from agentworld.data.traces import make_traces
from agentworld.errors import InputError
from agentworld.records.base import Digest
from agentworld.records.progress import OnProgress
from agentworld.runner.task import Plan, Task
from agentworld.steps.answers import open_answers
from agentworld.storage.pools import read_dataset


def plan(task: Task) -> Plan:
    """Answers are stored immediately, for all steps."""
    recipe, data = task.recipe.traces, task.folders["data"]
    if recipe is None:
        raise InputError("the recipe names no teacher; add a section `traces` with one")

    def work(out: Path, on_progress: OnProgress) -> Digest:
        answers = open_answers(task.store)
        return make_traces(recipe, data, out, on_progress, answers=answers).digest

    return Plan(work, domains=read_dataset(data).domains)
