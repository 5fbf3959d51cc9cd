"""Where a training step logs its figures."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path

from agentworld.records.base import Digest
from agentworld.records.metrics import OnMetrics
from agentworld.runner.task import Task

_LOGGING = "agentworld.operations.training_run"
"""Loaded by its name, as `start` does with what fetches a base: figures are no result of the step,
so that a change of the code that logs them trains nothing again."""


def training_run(
    task: Task, folder: Path, inputs: Mapping[str, Digest]
) -> AbstractContextManager[OnMetrics]:
    """A callback that logs figures while the block runs, to the run of a step's folder; `inputs`
    are what the step reads beside the folders of other steps.
    """
    read = {**task.digests, **inputs}
    run: AbstractContextManager[OnMetrics] = import_module(_LOGGING).training_run(
        task.store, folder, read
    )
    return run
