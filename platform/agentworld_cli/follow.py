"""Follows a job in other processes: its steps' progress, its memory, its end."""

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agentworld.runner.failure import StepFailed, full_sentence, is_full
from agentworld.runner.folders import verdict_of
from agentworld.runner.progress import StepProgress, read_progress
from agentworld.runner.watch import tree_memory_gib
from agentworld.steps.table import AFTER_GATE, MAIN_JOB, steps_of
from agentworld_cli.views import choose_view
from agentworld_pipelines.local import LOG

_SECONDS_BETWEEN_LOOKS = 0.5
_ALL_STEPS = steps_of("world_model", "agent", optional=True)


class FinishedJob(NamedTuple):
    """The result of a successful job."""

    folders: dict[str, Path]
    """The folders of the steps that were not skipped."""
    peak_memory_gib: float


def follow(job: subprocess.Popen[bytes], store: Path) -> FinishedJob:
    """Shows a job until it ends; raises StepFailed with the failed step's own message."""
    peak_memory_gib = 0.0
    with choose_view(_ALL_STEPS) as view:
        while True:
            ended = job.poll() is not None
            view.show(_progress(store))
            if ended:
                break
            peak_memory_gib = max(peak_memory_gib, tree_memory_gib())
            with suppress(subprocess.TimeoutExpired):
                job.wait(_SECONDS_BETWEEN_LOOKS)
    steps = _progress(store)
    if job.returncode != 0 or not {*MAIN_JOB} <= {step.step for step in steps}:
        raise _failure(steps, store)
    folders = {step.step: Path(step.folder) for step in steps if step.state != "skipped"}
    return FinishedJob(folders, peak_memory_gib)


def _progress(store: Path) -> list[StepProgress]:
    steps = [progress for step in _ALL_STEPS if (progress := read_progress(store, step))]
    return [*steps, *_skipped_steps(steps)]


def _skipped_steps(steps: list[StepProgress]) -> list[StepProgress]:
    """The steps that will not run because the gate failed."""
    last = steps[-1] if steps else None
    if last is None or last.step != "gate" or last.state not in ("finished", "reused"):
        return []
    if verdict_of(Path(last.folder)).verdict == "passed":
        return []
    return [StepProgress(step=step, state="skipped", started=last.started) for step in AFTER_GATE]


def _failure(steps: list[StepProgress], store: Path) -> StepFailed:
    for progress in steps:
        if progress.state == "failed":
            return StepFailed(progress.step, progress.failure, progress.sentence)
    if is_full(store):  # too full to write the message
        return StepFailed("", "StoreError", full_sentence(store))
    # A step whose import fails, or that the system killed, leaves no message.
    running = [progress.step for progress in steps if progress.state == "running"]
    begun_steps = {progress.step for progress in steps}
    missing = [step for step in MAIN_JOB if step not in begun_steps]
    step = [*running, *missing, MAIN_JOB[-1]][0]
    return StepFailed(step, "", f"its process ended without an error message; read {store / LOG}")
