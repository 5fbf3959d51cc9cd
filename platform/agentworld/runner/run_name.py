"""What a step's run is called, before anybody is asked to open it: a killed step opens no other."""

from pathlib import Path

from agentworld.records.base import Record
from agentworld.records.episode import new_name
from agentworld.runner.remote import keep, prune

_NAME = "name.json"


class RunName(Record):
    """What a step's run is called."""

    run: str


def run_name(folder: Path) -> str:
    """The name of the run that a step opens, or had opened before it was killed."""
    if not has_run_name(folder):
        RunName(run=new_name()).write(folder / _NAME)
        keep(folder / _NAME)
    return RunName.read(folder / _NAME).run


def has_run_name(folder: Path) -> bool:
    """Whether a run may be open."""
    return (folder / _NAME).is_file()


def forget_run_name(folder: Path) -> None:
    """The run is closed; the next one has another name."""
    (folder / _NAME).unlink()
    prune(folder / _NAME)
