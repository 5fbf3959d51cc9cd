"""Shows a job's steps: progress bars in a terminal, lines elsewhere."""

import sys
import time
from abc import abstractmethod
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from agentworld.records.progress import OnProgress
from agentworld.runner.progress import StepProgress

_SECONDS_BETWEEN_LINES = 30.0
_ENDINGS = ("finished", "reused", "skipped")

# As in rich's bars: a step's first minute (with a compiler's or an engine's start) says nothing
# about later ones, nor does the work of an earlier process.
_SECONDS_OF_PACE = 30.0


class View(AbstractContextManager["View"]):
    """Shows the steps' progress; the last state stays visible after its end."""

    @abstractmethod
    def show(self, steps: Sequence[StepProgress]) -> None:
        """Shows the steps that have begun, in their order."""


def choose_view(steps: Sequence[str]) -> View:
    """Bars, or lines if stderr is not a terminal."""
    return BarView(steps) if sys.stderr.isatty() else LineView()


@contextmanager
def show_progress(name: str) -> Iterator[OnProgress]:
    """A progress callback for work of this process, with the remaining time."""
    last = StepProgress(step=name, state="running", started=time.time())
    with choose_view([name]) as view:
        view.show([last])

        def on_progress(done: int, total: int) -> None:
            view.show([last.model_copy(update={"done": done, "total": total})])

        yield on_progress
        seconds = time.time() - last.started
        view.show([last.model_copy(update={"state": "finished", "seconds": seconds})])


class BarView(View):
    """A bar for each step, with the remaining time."""

    def __init__(self, steps: Sequence[str]) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<14}"),
            BarColumn(bar_width=30),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[state]}"),
            console=Console(stderr=True),
        )
        self._tasks = {
            step: self._progress.add_task(step, start=False, total=None, state="", visible=False)
            for step in steps
        }

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._progress.stop()

    def show(self, steps: Sequence[StepProgress]) -> None:
        """Moves the bars."""
        for step in steps:
            self._move(self._tasks[step.step], step)

    def _move(self, task: TaskID, step: StepProgress) -> None:
        if not self._progress.tasks[task].started:
            self._progress.start_task(task)
        if step.state in _ENDINGS:
            done = int(step.state != "skipped")
            self._progress.update(task, total=1, completed=done, state=_ending(step), visible=True)
            self._progress.stop_task(task)
        else:
            total = step.total or None
            state = step.state if step.state == "failed" else ""
            self._progress.update(task, total=total, completed=step.done, state=state, visible=True)


class LineView(View):
    """A line when a step begins and ends, and every half a minute in between."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._rates: defaultdict[str, _ProgressRate] = defaultdict(_ProgressRate)
        self._last_line = 0.0

    def __exit__(self, *_error: object) -> None:
        """Printed lines stay."""

    def show(self, steps: Sequence[StepProgress]) -> None:
        """Prints changes."""
        for step in steps:
            self._rates[step.step].take(step)
            is_new = self._states.get(step.step) != step.state
            is_due = time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES
            if is_new or (is_due and step.state == "running"):
                self._print(step)

    def _print(self, step: StepProgress) -> None:
        self._states[step.step] = step.state
        self._last_line = time.monotonic()
        has_ended = step.state in _ENDINGS
        pace = self._rates[step.step]
        message = _ending(step) if has_ended else _middle(step, pace.seconds_remaining)
        sys.stderr.write(f"{step.step:<14} {message}\n")


class _ProgressRate:
    """The speed of a step in the last half minute."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque()

    def take(self, step: StepProgress) -> None:
        """Records the share that is done now."""
        now = time.monotonic()
        self._samples.append((now, step.done / max(1, step.total)))
        while len(self._samples) > 2 and self._samples[1][0] <= now - _SECONDS_OF_PACE:
            self._samples.popleft()

    @property
    def seconds_remaining(self) -> float | None:
        """Null if there was no progress."""
        (before, from_), (now, to) = self._samples[0], self._samples[-1]
        return (1 - to) * (now - before) / (to - from_) if to > from_ else None


def _ending(step: StepProgress) -> str:
    return f"finished in {step.seconds:.0f} s" if step.state == "finished" else step.state


def _middle(step: StepProgress, seconds_remaining: float | None) -> str:
    if step.state == "failed" or not step.done:
        return step.state
    to_go = "" if seconds_remaining is None else f", {seconds_remaining:.0f} s to go"
    return f"{step.done / step.total:.0%}{to_go}"
