"""Reports a job's progress on the step's output: what it waits for, the log of its first process,
and its progress. If this information cannot be read, that is reported once and ends nothing.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import Cluster
from agentworld.errors import ClusterError, StoreError
from agentworld.runner.progress import progress_path, read_progress
from agentworld.runner.remote import fetch
from agentworld_pipelines.job_status import (
    duration_text,
    first_problem,
    job_status,
    progress_of,
    refusal_of_pods,
)
from agentworld_pipelines.log_tail import LogTail
from agentworld_pipelines.output import write_line


class Pods(NamedTuple):
    """The selector of a job's pods, and of the pod whose log is reported."""

    selector: str
    first: Mapping[str, str]
    """The labels of the pod with the first process's log."""
    container: str


class JobReporter:
    """The reporter of one job; it does not repeat itself."""

    def __init__(self, cluster: Cluster, name: str, pods: Pods) -> None:
        self.problem = ""
        """The first problem of the pods when they were last seen."""
        self._cluster = cluster
        self._name = name
        self._of_job = pods
        self._tails: dict[str, LogTail] = {}
        self._last_lines: dict[str, str] = {}

    def report(self, job: Object) -> None:
        """Reports everything new since the last call."""
        status = job_status(job)
        self._write_new(
            "state", f"{self._name} is {status.state}{status.reason and f' ({status.reason})'}"
        )
        try:
            pods = self._pods()
        except ClusterError as error:
            self._write_new("pods", f"the pods of {self._name} cannot be seen: {error}")
            return
        if pods:  # a failed job may have lost them by now
            self.problem = first_problem(pods)
        elif not self.problem:
            self.problem = self._refusal(job)
        if self.problem:
            self._write_new("problem", self.problem)
        self._report_log(pods)

    def _write_new(self, topic: str, line: str) -> None:
        if self._last_lines.get(topic) != line:
            self._last_lines[topic] = line
            write_line(line)

    def _pods(self) -> list[Object]:
        return self._cluster.all("Pod", self._of_job.selector).objects

    def _refusal(self, job: Object) -> str:
        try:
            events = self._cluster.all("Event", fields="reason=FailedCreate").objects
        except ClusterError as error:
            self._write_new("events", f"why {self._name} has no pods cannot be seen: {error}")
            return ""
        return refusal_of_pods(events, job)

    def _report_log(self, pods: Sequence[Object]) -> None:
        pod = _first(pods, self._of_job.first)
        if pod is None or pod.get("status", {}).get("phase", "Pending") == "Pending":
            return
        tail = self._tails.setdefault(pod["metadata"]["uid"], LogTail())
        name = pod["metadata"]["name"]
        try:
            container = ("container", self._of_job.container)
            text = self._cluster.log(name, [container, *tail.query])
        except ClusterError as error:
            self._write_new("log", f"the log of {name} cannot be read: {error}")
            return
        for line in tail.unseen(text):
            write_line(line)


class ProgressReporter:
    """Reports a stage's progress from the file that it writes into the store."""

    def __init__(self, store: Path, stage: str, seconds: float) -> None:
        self._store = store
        self._stage = stage
        self._seconds = seconds
        self._first_seen: tuple[float, int] | None = None
        self._last_report = (0.0, "")

    def report(self, job: Object) -> None:
        """Reports at most at the given interval, and nothing twice."""
        now = time.monotonic()
        line = self._progress(now) or progress_of(job)
        last, before = self._last_report
        if line and line != before and (not before or now - last >= self._seconds):
            self._last_report = (now, line)
            write_line(f"{self._stage}: {line}")

    def _progress(self, now: float) -> str:
        with suppress(StoreError):
            fetch(progress_path(self._store, self._stage))
        progress = read_progress(self._store, self._stage)
        if progress is None or not progress.total:
            return ""
        # from the first seen value, because a resumed stage did not just do all of it
        if self._first_seen is None or progress.done < self._first_seen[1]:
            self._first_seen = (now, progress.done)
        start, first = self._first_seen
        progress_text = f"{progress.done} of {progress.total}"
        if progress.done == first:
            return progress_text
        remaining_seconds = (
            (now - start) / (progress.done - first) * (progress.total - progress.done)
        )
        return f"{progress_text}, {duration_text(remaining_seconds)} left"


def _first(pods: Sequence[Object], labels: Mapping[str, str]) -> Object | None:
    """The newest pod with these labels; a restarted job may have several."""
    candidates = [
        pod for pod in pods if labels.items() <= pod["metadata"].get("labels", {}).items()
    ]
    return max(candidates, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default=None)
