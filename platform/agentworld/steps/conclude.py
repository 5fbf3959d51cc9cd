"""The last step of every pipeline, run in any case: records how the run ended.

Steps report their progress in files of the store, which may be from an earlier run. A report
belongs to this run if it is newer than the last conclusion of the same pipeline and not older than
this run's first step. Kubeflow does not tell every program when a run began. Concurrent runs of one
pipeline in the same store are not distinguished, nor are the `collect` steps of two pipelines.
"""

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from agentworld.errors import InputError
from agentworld.records.conclusion import Conclusion
from agentworld.runner.failure import translate_errors
from agentworld.runner.folders import verdict_of
from agentworld.runner.progress import StepProgress, read_progress
from agentworld.runner.remote import keep, on_store
from agentworld.steps.table import steps_of
from agentworld.storage.working_copy import address_of

_JOBS = "jobs"
_SUCCEEDED = "SUCCEEDED"
_DONE = ("finished", "reused")


class Status(Protocol):
    """Kubeflow's state of all steps together."""

    @property
    def state(self) -> str:
        """SUCCEEDED, or another final state."""
        ...

    @property
    def error_message(self) -> str | None:
        """The reason of a failure, if Kubeflow knows it."""
        ...


class _End(NamedTuple):
    """How a run ended, and at which step."""

    state: Literal["succeeded", "refused", "failed"]
    step: str = ""
    kind: str = ""
    sentence: str = ""


@on_store
def conclude(pipeline: str, recipe: str, store: str, job: str, status: Status) -> str:
    """Writes the record once for each job and prints a line; returns its file.

    Raises StoreError if the record cannot be written.
    """
    if not re.fullmatch("[A-Za-z0-9-]+", job):
        raise InputError(f"{job!r} is not a job's id; use letters, digits and - only")
    path = Path(store) / _JOBS / f"{job}.json"
    if not path.is_file():
        reports = _read_reports(Path(store), pipeline, status)
        start = _start_time(reports, pipeline)
        record = Conclusion(
            job=job,
            pipeline=pipeline,
            recipe=address_of(recipe),
            started=None if start is None else datetime.fromtimestamp(start, UTC),
            ended=datetime.now(UTC),
            **_end(Path(store), reports, status)._asdict(),
        )
        with translate_errors(Path(store)):
            record.write(path)
        keep(path)
    conclusion = Conclusion.read(path)
    reason = (
        f" at {conclusion.step or 'some step'}: {conclusion.sentence}"
        if conclusion.sentence
        else ""
    )
    sys.stdout.write(f"{conclusion.pipeline} {conclusion.state}{reason}\n")
    return str(path)


def conclusions(store: Path) -> list[Conclusion]:
    """The conclusions of a store's runs, the newest first, without unreadable records."""
    records: list[Conclusion] = []
    for path in (store / _JOBS).glob("*.json"):
        with suppress(InputError):  # a bad record must not hide the others
            records.append(Conclusion.read(path))
    return sorted(records, key=lambda conclusion: conclusion.ended, reverse=True)


def _read_reports(store: Path, pipeline: str, status: Status) -> list[StepProgress]:
    """The last reports of this run's steps, in their order."""
    last = next(
        (conclusion for conclusion in conclusions(store) if conclusion.pipeline == pipeline), None
    )
    steps = steps_of(pipeline, optional=True)
    all_reports = [report for step in steps if (report := read_progress(store, step))]
    reports = [
        report for report in all_reports if not last or report.started >= last.ended.timestamp()
    ]
    start = _start_time(reports, pipeline)
    if start is None:
        return reports
    if status.state == _SUCCEEDED:
        # The second step begins after the first; a report of the first that is newer belongs to
        # another pipeline.
        return reports[1:] if reports[1:] and reports[1].started < start else reports
    return [report for report in reports if report.started >= start]


def _start_time(reports: Sequence[StepProgress], pipeline: str) -> float | None:
    return reports[0].started if reports and reports[0].step == steps_of(pipeline)[0] else None


def _end(store: Path, reports: Sequence[StepProgress], status: Status) -> _End:
    if status.state == _SUCCEEDED:
        return _find_refusal(store, reports) or _End("succeeded")
    message = status.error_message or f"Kubeflow says {status.state}, without a reason"
    for report in reports:
        if report.state == "failed":
            return _End("failed", report.step, report.failure, report.sentence)
    for report in reports:
        if report.state == "running":
            return _End(
                "failed", report.step, "", f"its process ended without an error message; {message}"
            )
    return _End("failed", sentence=message)


def _find_refusal(store: Path, reports: Sequence[StepProgress]) -> _End | None:
    for report in reports:
        if report.step == "gate" and report.state in _DONE:
            # another pod's working copy of a bucket may have another path
            verdict = verdict_of(store / "steps" / report.step / Path(report.folder).name)
            if verdict.verdict == "refused":
                return _End("refused", report.step, "", verdict.reason)
    return None
