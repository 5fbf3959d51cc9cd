"""The pipelines' overhead for their steps, against its target: `make bench-pipelines`.

`.bench/pipelines.json`. The whole smoke job runs from the start, and then repeatedly without
changes. A step's overhead is the time from Kubeflow's start of its task to its end, without the
time of its own process. The yardstick, in the same run, is a process that only imports the step,
once for each of them.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agentworld.recipes import recipe_path
from agentworld.records.base import digest_file
from agentworld.runner.progress import forget_progress, read_progress
from agentworld.steps.table import MAIN_JOB
from agentworld_pipelines.local import LOG, start
from benchmarks.figures import percentile
from benchmarks.kfp_log import seconds_of_tasks
from benchmarks.report import empty_folder, measured_on, publish

_RECIPE = "smoke"
_ROUNDS = 5
_LARGE_BYTES = 4096


class Round(NamedTuple):
    """One run of the whole job."""

    seconds: float
    overheads: list[float]
    """Of each step, in seconds."""


def main() -> int:
    """Exit status 1 if a required target is missed."""
    machine_fields = measured_on()
    store = empty_folder("pipelines")
    first = job(store)
    repetitions = [job(store) for _ in range(_ROUNDS)]
    overheads = sorted(
        overhead for job_run in [first, *repetitions] for overhead in job_run.overheads
    )
    plain = sorted(import_seconds(step) for step in MAIN_JOB)
    figures: dict[str, float] = {
        "overhead_p50_seconds": round(percentile(overheads, 0.5), 3),
        "overhead_p99_seconds": round(percentile(overheads, 0.99), 3),
        "plain_process_p50_seconds": round(percentile(plain, 0.5), 3),
        "first_run_seconds": round(first.seconds, 1),
        "all_reused_seconds": round(
            percentile(sorted(job_run.seconds for job_run in repetitions), 0.5), 2
        ),
        "steps": len(MAIN_JOB),
        "bytes_copied_between_steps": copied_bytes(store),
        "bytes_alike_in_steps": alike_bytes(store),
    }
    print(json.dumps(figures, indent=2))
    return publish("pipelines", {**machine_fields, **figures})


def job(store: Path) -> Round:
    """Runs every step, or finds it finished."""
    forget_progress(store)
    start_time = time.monotonic()
    assert start(str(recipe_path(_RECIPE).resolve()), store).wait() == 0, store / LOG
    seconds = time.monotonic() - start_time
    tasks = seconds_of_tasks((store / LOG).read_text())
    own_times = {step: own_seconds(store, step) for step in MAIN_JOB}
    return Round(seconds, [tasks[step] - own_times[step] for step in MAIN_JOB])


def own_seconds(store: Path, step: str) -> float:
    """From the step's first output to its last."""
    progress = read_progress(store, step)
    assert progress is not None, step
    assert progress.state in ("finished", "reused"), progress
    return (store / "progress" / f"{step}.json").stat().st_mtime - progress.started


def import_seconds(step: str) -> float:
    """A process that only imports the step."""
    start_time = time.monotonic()
    subprocess.run([sys.executable, "-c", f"import agentworld.steps.{step}"], check=True)
    return time.monotonic() - start_time


def copied_bytes(store: Path) -> int:
    """Bytes that Kubeflow copied between tasks, beyond small values: steps pass folders by name."""
    return sum(path.stat().st_size for path in files_of(store / "kfp"))


def alike_bytes(store: Path) -> int:
    """Bytes that several steps store: a checkpoint is complete, with its own tokenizer."""
    steps: dict[str, set[str]] = {}
    sizes: dict[str, int] = {}
    for path in files_of(store / "steps"):
        digest = digest_file(path)
        steps.setdefault(digest, set()).add(path.relative_to(store / "steps").parts[0])
        sizes[digest] = path.stat().st_size
    return sum(sizes[digest] * (len(storing_steps) - 1) for digest, storing_steps in steps.items())


def files_of(folder: Path) -> Iterator[Path]:
    """Files large enough to be results instead of metadata."""
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_size > _LARGE_BYTES:
            yield path


if __name__ == "__main__":
    sys.exit(main())
