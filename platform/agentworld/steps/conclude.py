"""The last step of every pipeline, whatever happened before: how the run ended, for good.

Steps say how they fare in files of the store, which an earlier run may have left. Of this run is
what its pipeline's steps said since the last run of the same pipeline ended, and since its own
first step began; Kubeflow does not tell every program when a run began. Two runs of one pipeline
that share a store at the same time are not told apart, nor are the `collect` of two pipelines.
"""

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from agentworld.errors import InputError
from agentworld.records.conclusion import Conclusion
from agentworld.runner.failure import in_words
from agentworld.runner.folders import verdict_of
from agentworld.runner.order import STEPS_OF
from agentworld.runner.progress import StepProgress, read_progress
from agentworld.runner.remote import anywhere, keep
from agentworld.storage.working_copy import there

_JOBS = "jobs"
_SUCCEEDED = "SUCCEEDED"
_DONE = ("finished", "reused")


class Status(Protocol):
    """What Kubeflow says of all steps together."""

    @property
    def state(self) -> str:
        """SUCCEEDED, or how else they ended."""
        ...

    @property
    def error_message(self) -> str | None:
        """What it knows of a failure."""
        ...


class _End(NamedTuple):
    """How a run ended, and by which step."""

    state: Literal["succeeded", "refused", "failed"]
    step: str = ""
    kind: str = ""
    sentence: str = ""


@anywhere()
def conclude(pipeline: str, recipe: str, store: str, job: str, status: Status) -> str:
    """The file of the record, which is written once for a job; says it in a line, too.

    Raises StoreError where the disk takes no record.
    """
    if not re.fullmatch("[A-Za-z0-9-]+", job):
        raise InputError(f"{job!r} is no id of a job; give letters, digits and - alone")
    path = Path(store) / _JOBS / f"{job}.json"
    if not path.is_file():
        said = _said(Path(store), pipeline, status)
        began = _began(said, pipeline)
        ended = Conclusion(
            job=job,
            pipeline=pipeline,
            recipe=there(recipe),
            began=None if began is None else datetime.fromtimestamp(began, UTC),
            ended=datetime.now(UTC),
            **_end(Path(store), said, status)._asdict(),
        )
        with in_words(Path(store)):
            ended.write(path)
        keep(path)
    found = Conclusion.read(path)
    why = f" at {found.step or 'some step'}: {found.sentence}" if found.sentence else ""
    sys.stdout.write(f"{found.pipeline} {found.state}{why}\n")
    return str(path)


def conclusions(store: Path) -> list[Conclusion]:
    """How the runs of a store ended, the newest first."""
    found = (Conclusion.read(path) for path in (store / _JOBS).glob("*.json"))
    return sorted(found, key=lambda each: each.ended, reverse=True)


def _said(store: Path, pipeline: str, status: Status) -> list[StepProgress]:
    """What the steps of this run said last, in their order."""
    last = next((each for each in conclusions(store) if each.pipeline == pipeline), None)
    told = [each for step in STEPS_OF[pipeline] if (each := read_progress(store, step))]
    said = [each for each in told if not last or each.started >= last.ended.timestamp()]
    began = _began(said, pipeline)
    if began is None:
        return said
    if status.state == _SUCCEEDED:
        # Its second step began after its first; a first that began later is another pipeline's.
        return said[1:] if said[1:] and said[1].started < began else said
    return [each for each in said if each.started >= began]


def _began(said: Sequence[StepProgress], pipeline: str) -> float | None:
    return said[0].started if said and said[0].step == STEPS_OF[pipeline][0] else None


def _end(store: Path, said: Sequence[StepProgress], status: Status) -> _End:
    if status.state == _SUCCEEDED:
        return _refused(store, said) or _End("succeeded")
    known = status.error_message or f"Kubeflow says {status.state}, and no more"
    for each in said:
        if each.state == "failed":
            return _End("failed", each.step, each.failure, each.sentence)
    for each in said:
        if each.state == "running":
            return _End("failed", each.step, "", f"its process ended without a word; {known}")
    return _End("failed", sentence=known)


def _refused(store: Path, said: Sequence[StepProgress]) -> _End | None:
    for each in said:
        if each.step == "gate" and each.state in _DONE:
            # Another pod may have had its copy of a bucket elsewhere.
            decided = verdict_of(store / "steps" / each.step / Path(each.folder).name)
            if decided.verdict == "refused":
                return _End("refused", each.step, "", decided.reason)
    return None
