"""Where the training of a stage starts."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from agentworld.records.base import Digest
from agentworld.runner.folders import model_of
from agentworld.runner.task import Task
from agentworld.steps.content import content_of


class Start(NamedTuple):
    """A model's folder, or a new model."""

    folder: Path | None
    """Null for a new model of the recipe's sizes."""
    inputs: Mapping[str, Digest]
    """What the step reads of it beside its parent."""


def start_of(task: Task) -> Start:
    """The parent stage where one is given, else the base that the recipe names, else nothing."""
    if "parent" in task.folders:
        return Start(model_of(task.folders["parent"]), {})
    base = task.recipe.model.base
    return Start(Path(base) if base else None, content_of("base", base))
