"""The stages that a step is given."""

from collections.abc import Mapping
from pathlib import Path

from agentworld.errors import InputError
from agentworld.runner.task import Task

STAGES = ("cpt", "sft", "rl")


def stage_folders(task: Task) -> Mapping[str, Path]:
    """By stage, in the order of training; raises InputError where none is given."""
    folders = {stage: task.folders[stage] for stage in STAGES if stage in task.folders}
    if not folders:
        raise InputError("no stage is given; give one at least of --cpt, --sft and --rl")
    return folders
