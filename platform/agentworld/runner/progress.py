"""The progress of a step, in a small file that the job's caller can watch."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Literal

from agentworld.errors import InputError, StoreError
from agentworld.records.base import Record
from agentworld.records.progress import OnProgress, ignore_progress
from agentworld.runner.remote import keep, prune

State = Literal["running", "reused", "finished", "failed", "skipped"]
_SECONDS_BETWEEN_WRITES = 0.5


class StepProgress(Record):
    """The last progress of a step."""

    step: str
    state: State
    done: int = 0
    total: int = 0
    started: float
    """Seconds since the epoch."""
    seconds: float = 0.0
    folder: str = ""
    failure: str = ""
    """The kind of error that ended it."""
    sentence: str = ""
    """The error's sentence."""


_watcher: ContextVar[OnProgress] = ContextVar("watcher", default=ignore_progress)


@contextmanager
def watched_by(on_progress: OnProgress) -> Iterator[None]:
    """Steps that this process runs in the block report their progress to this callback too."""
    token = _watcher.set(on_progress)
    try:
        yield
    finally:
        _watcher.reset(token)


class ProgressFile:
    """Writes a step's progress, at most twice a second.

    Several processes that run a step together keep the first failure. The launcher then ends the
    other processes, or they fail because a peer is missing.
    """

    def __init__(self, store: Path, step: str, *, num_processes: int = 1) -> None:
        self._store, self._num_processes = store, num_processes
        self._path = progress_path(store, step)
        self._last = StepProgress(step=step, state="running", started=time.time())
        self._last_write = 0.0

    def begin(self) -> None:
        """Records that the step has started."""
        self._write(self._last)
        keep(self._path)

    def update(self, done: int, total: int) -> None:
        """Records how much of the work is done."""
        is_due = time.monotonic() - self._last_write >= _SECONDS_BETWEEN_WRITES
        if is_due and not self._has_failed_peer():
            self._write(self._last.model_copy(update={"done": done, "total": total}))
            _watcher.get()(done, total)

    def finish(self, state: Literal["reused", "finished"], folder: Path, seconds: float) -> None:
        """Records that the step's folder is complete."""
        fields = {"state": state, "folder": str(folder), "seconds": seconds}
        self._write(self._last.model_copy(update=fields))
        keep(self._path)

    def fail(self, failure: str, sentence: str) -> None:
        """Records the failure, if the disk or the bucket allows it."""
        # The failure may be a full disk, which the watching process finds itself.
        with suppress(OSError, StoreError):
            if self._has_failed_peer():
                return
            fields = {"state": "failed", "failure": failure, "sentence": sentence}
            self._write(self._last.model_copy(update=fields))
            keep(self._path)

    def _has_failed_peer(self) -> bool:
        if self._num_processes == 1:
            return False
        progress = read_progress(self._store, self._last.step)
        return progress is not None and progress.state == "failed"

    def _write(self, progress: StepProgress) -> None:
        progress.write(self._path)
        self._last = progress
        self._last_write = time.monotonic()


def read_progress(store: Path, step: str) -> StepProgress | None:
    """A step's progress; null before it started."""
    try:
        return StepProgress.read(progress_path(store, step))
    except InputError:
        return None


def forget_progress(store: Path) -> None:
    """Removes earlier progress before a job starts."""
    folder = store / "progress"
    for path in folder.glob("*.json"):
        path.unlink()
    prune(folder)


def progress_path(store: Path, step: str) -> Path:
    """The file with a step's progress."""
    return store / "progress" / f"{step}.json"
