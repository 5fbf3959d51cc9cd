"""Parses task times in the log of Kubeflow's local runner."""

import re
from datetime import datetime, timedelta

_LINE = re.compile(
    r"(?m)^(\d\d:\d\d:\d\d\.\d{3}) - INFO - (Executing task|Task) (?:\x1b\[\d+m)?'([\w-]+)'"
    r"(?:\x1b\[0m)?( finished)?"
)


def seconds_of_tasks(log: str) -> dict[str, float]:
    """The seconds of each task by its step's name; the log has no dates, so midnight may be in
    between.
    """
    starts: dict[str, datetime] = {}
    durations: dict[str, float] = {}
    for moment, event, task, finished in _LINE.findall(log):
        at, step = datetime.strptime(moment, "%H:%M:%S.%f"), task.replace("-", "_")
        if event == "Executing task":
            starts[step] = at
        elif finished:
            durations[step] = (at - starts[step]) % timedelta(days=1) / timedelta(seconds=1)
    return durations
