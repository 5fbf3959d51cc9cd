"""Supervised fine-tuning of the CPT checkpoint, or of the recipe's base."""

from pathlib import Path

from agentworld.errors import InputError
from agentworld.records.base import Digest
from agentworld.records.progress import OnProgress
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.task import Plan, Task
from agentworld.steps.content import check_unchanged
from agentworld.steps.start import check_rates, start_of
from agentworld.steps.training_run import training_run
from agentworld.storage.pools import read_dataset
from agentworld.storage.traces import read_trace_set


def plan(task: Task) -> Plan:
    """Trains the parent's model, or a new one as CPT does; on traces, if given."""
    recipe, data, start = task.recipe, task.folders["data"], start_of(task)
    check_rates("sft", recipe.sft, from_scratch=start.from_scratch)
    traces = task.folders.get("traces")
    _check_traces(task)

    def work(out: Path, on_progress: OnProgress) -> Digest:
        with frozen_gc():
            from agentworld.train import next_token
        parent = start.parent() if start.parent else None
        with training_run(task, out, start.inputs) as on_metrics:
            checkpoint = next_token.run(
                recipe.sft, recipe.model, data, parent, out, on_progress, on_metrics, traces
            )
        check_unchanged(checkpoint, start.inputs)
        return checkpoint.artifact

    return Plan(work, start.inputs, domains=read_dataset(data).domains)


def _check_traces(task: Task) -> None:
    """Raises InputError if the recipe's traces are not given, or belong to another recipe."""
    folder, recipe = task.folders.get("traces"), task.recipe
    if folder is None:
        if recipe.traces:
            raise InputError(
                "the recipe has traces for SFT, and none are given; give --traces, the folder of a"
                " finished `data traces`, or compile the pipeline with --stages traces,cpt,sft,rl"
            )
        return
    if recipe.sft.reasoning != "off":
        raise InputError(
            "traces have thoughts of their own, and sft.reasoning is"
            f" {recipe.sft.reasoning}; set it to off"
        )
    data = read_dataset(task.folders["data"]).digest
    if (own := read_trace_set(folder).data) != data:
        raise InputError(f"{folder} holds traces of the data {own}, not of {data}; give these data")
