"""How far a step is, in a small file that whoever started the job can watch."""

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
    """The last that a step said of itself."""

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
    """What is wrong and what to do."""


_watcher: ContextVar[OnProgress] = ContextVar("watcher", default=ignore_progress)


@contextmanager
def watched_by(on_progress: OnProgress) -> Iterator[None]:
    """Steps of this process that are done in the block report their progress here too."""
    token = _watcher.set(on_progress)
    try:
        yield
    finally:
        _watcher.reset(token)


class ProgressFile:
    """Writes a step's progress, at most twice a second."""

    def __init__(self, store: Path, step: str) -> None:
        self._path = progress_path(store, step)
        self._last = StepProgress(step=step, state="running", started=time.time())
        self._last_write = 0.0

    def begin(self) -> None:
        """Says that the step is under way."""
        self._write(self._last)
        keep(self._path)

    def update(self, done: int, total: int) -> None:
        """Says how far the work is."""
        if time.monotonic() - self._last_write >= _SECONDS_BETWEEN_WRITES:
            self._write(self._last.model_copy(update={"done": done, "total": total}))
            _watcher.get()(done, total)

    def finish(self, state: Literal["reused", "finished"], folder: Path, seconds: float) -> None:
        """Says that the step's folder is there."""
        fields = {"state": state, "folder": str(folder), "seconds": seconds}
        self._write(self._last.model_copy(update=fields))
        keep(self._path)

    def fail(self, failure: str, sentence: str) -> None:
        """Says what went wrong, if the disk lets it, or the bucket."""
        # The failure may be a full disk; whoever watches then finds the disk full itself.
        with suppress(OSError, StoreError):
            fields = {"state": "failed", "failure": failure, "sentence": sentence}
            self._write(self._last.model_copy(update=fields))
            keep(self._path)

    def _write(self, progress: StepProgress) -> None:
        progress.write(self._path)
        self._last = progress
        self._last_write = time.monotonic()


def read_progress(store: Path, step: str) -> StepProgress | None:
    """A step's progress; null before it began."""
    try:
        return StepProgress.read(progress_path(store, step))
    except InputError:
        return None


def forget_progress(store: Path) -> None:
    """Before a job begins, so that nothing of the last one is taken for its own."""
    folder = store / "progress"
    for path in folder.glob("*.json"):
        path.unlink()
    prune(folder)


def progress_path(store: Path, step: str) -> Path:
    """The file that a step says it in."""
    return store / "progress" / f"{step}.json"
