"""Records a training step's figures."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path

from agentworld.records.base import Digest
from agentworld.records.metrics import OnMetrics
from agentworld.runner.task import Task

_LOGGING = "agentworld.operations.training_run"
"""Loaded by name, as `start` loads the code that fetches a base: figures are not part of the step's
result, so a change of the code that records them repeats no training.
"""


def training_run(
    task: Task, folder: Path, inputs: Mapping[str, Digest]
) -> AbstractContextManager[OnMetrics]:
    """A callback that records figures while the block runs, for the run of a step's folder;
    `inputs` are the step's inputs in addition to folders of other steps.
    """
    read = {**task.digests, **inputs}
    run: AbstractContextManager[OnMetrics] = import_module(_LOGGING).training_run(
        task.store, folder, read
    )
    return run
