"""The name of a step's run, chosen before the run is opened: a killed step opens no second run."""

from pathlib import Path

from agentworld.records.base import Record
from agentworld.records.episode import new_name
from agentworld.runner.remote import keep, prune

_NAME = "name.json"


class RunName(Record):
    """The name of a step's run."""

    run: str


def run_name(folder: Path) -> str:
    """The name of the run that a step opens, or opened before it was killed."""
    if not has_run_name(folder):
        RunName(run=new_name()).write(folder / _NAME)
        keep(folder / _NAME)
    return RunName.read(folder / _NAME).run


def has_run_name(folder: Path) -> bool:
    """Whether a run may be open."""
    return (folder / _NAME).is_file()


def forget_run_name(folder: Path) -> None:
    """Forgets the name of a closed run, so that the next one gets another."""
    (folder / _NAME).unlink()
    prune(folder / _NAME)
