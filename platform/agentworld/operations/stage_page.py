"""Keeps the page of a training stage up to date while the stage runs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentworld.records.metrics import OnMetrics
from agentworld.reports.stage import write_stage_page
from agentworld.runner.failure import sentence_of
from agentworld.runner.progress import read_progress

_SECONDS_BETWEEN_PAGES = 2.0


@contextmanager
def stage_page(store: Path, folder: Path) -> Iterator[OnMetrics]:
    """A callback that rewrites the page of a step's folder when its figures have changed.

    The page says how the stage ended; the page of a killed process says when it last ran.
    """
    page = _StagePage(store, folder)
    page.write()
    try:
        yield page.on_metrics
    except Exception as error:
        write_stage_page(folder, f"Ended without a result: {sentence_of(error)}", is_running=False)
        raise
    write_stage_page(folder, "Finished.", is_running=False)


class _StagePage:
    def __init__(self, store: Path, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._first: tuple[float, float] | None = None
        """The time and the share of the first progress; a resumed training does not start at 0."""
        self._last_step: int | None = None
        self._last_write = 0.0

    def on_metrics(self, step: int, _figures: object) -> None:
        """At most every two seconds, but always for more figures of the same step."""
        is_early = time.monotonic() - self._last_write < _SECONDS_BETWEEN_PAGES
        if step == self._last_step or not is_early:
            self.write()
        self._last_step = step

    def write(self) -> None:
        """Writes the page of a running stage."""
        write_stage_page(self._folder, self._state(), is_running=True)
        self._last_write = time.monotonic()

    def _state(self) -> str:
        progress = read_progress(self._store, self._folder.parent.name)
        if progress is None or not progress.total:
            return "Running."
        now, share = time.monotonic(), progress.done / progress.total
        self._first = self._first or (now, share)
        seconds, done = now - self._first[0], share - self._first[1]
        left = f", about {_duration(seconds * (1 - share) / done)} left" if done > 0 else ""
        return f"Running: {share:.0%} done{left}."


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
