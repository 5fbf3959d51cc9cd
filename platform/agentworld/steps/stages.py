"""The stages among a step's inputs."""

from collections.abc import Mapping
from pathlib import Path

from agentworld.errors import InputError
from agentworld.records.checkpoint import WORLD_STAGES
from agentworld.runner.task import Task


def stage_folders(task: Task) -> Mapping[str, Path]:
    """Folders by stage, in the order of training; raises InputError if there is none."""
    folders: dict[str, Path] = {
        stage: task.folders[stage] for stage in WORLD_STAGES if stage in task.folders
    }
    if not folders:
        raise InputError("no stage is given; give one at least of --cpt, --sft and --rl")
    return folders
