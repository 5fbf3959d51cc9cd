"""Where a training step logs its figures."""

from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path

from agentworld.records.metrics import OnMetrics

_LOGGING = "agentworld.operations.training_run"
"""Loaded by its name, as `start` does with what fetches a base: figures are no result of the step,
so that a change of the code that logs them trains nothing again."""


def training_run(store: Path, folder: Path) -> AbstractContextManager[OnMetrics]:
    """A callback that logs figures while the block runs, to the run of a step's folder."""
    run: AbstractContextManager[OnMetrics] = import_module(_LOGGING).training_run(store, folder)
    return run
