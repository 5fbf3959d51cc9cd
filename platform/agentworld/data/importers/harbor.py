"""The folders of Harbor: a trajectory is `JOB/TRIAL/agent/trajectory.json`.

In a trial with several steps it is `JOB/TRIAL/steps/STEP/agent/trajectory.json`.
"""

from pydantic import JsonValue

from agentworld.data.importers.paths import first_text
from agentworld.data.importers.rows import document_of
from agentworld.storage.source import UNREADABLE, SourceFile

_RECORDS = ("config.json", "lock.json", "result.json")
_FOLDERS = {"agent", "user-agent", "verifier", "artifacts"}
_LOGS = (".log", ".cast", ".pane")
_TRIAL, _TRIAL_OF_STEP = "../", "../../../"
_TASKS = (
    ("result.json", ("task_name",)),
    ("config.json", ("task.name", "task.path")),
)


def is_trajectory(file: SourceFile) -> bool:
    """Whether the file's path is one that Harbor's agents write trajectories to."""
    return file.name.split("/")[-2:] == ["agent", "trajectory.json"]


def is_other_record(file: SourceFile) -> bool:
    """Whether the file is one that Harbor or its agents write beside trajectories."""
    *folders, name = file.name.split("/")
    if name.startswith("trajectory"):
        return False
    return name in _RECORDS or name.endswith(_LOGS) or not _FOLDERS.isdisjoint(folders)


def task_of(file: SourceFile) -> str:
    """The task of a trajectory's trial; empty if the trajectory is in no trial."""
    folders = file.address.split("/")[:-1]
    if folders[-1:] != ["agent"]:
        return ""
    trial = _TRIAL_OF_STEP if folders[-3:-2] == ["steps"] else _TRIAL
    for name, paths in _TASKS:
        if task := first_text(content_of(file.sibling(trial + name)), paths):
            return task.rstrip("/").rpartition("/")[2] if name == "config.json" else task
    return ""


def content_of(file: SourceFile) -> JsonValue:
    """The JSON in a file; null if it cannot be read."""
    try:
        with file.open() as stream:
            return document_of(stream).value
    except UNREADABLE:
        return None
