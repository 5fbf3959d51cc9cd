"""The conditions after each start of a training, and at its end.

It reads logs, the journal, and the files of the store, and shares no code with the product.
"""

import hashlib
import json
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from campaigns.harness.finding import Finding
from campaigns.harness.journal import read
from campaigns.training.attempts import Outcome
from campaigns.training.trainings import Training

PROMISES = {
    "different": "an end that is not that of the same training without a fault",
    "repeated": "a start that does not go on from the newest whole checkpoint",
    "unexplained": "an end without success, and without a sentence that says why",
    "stuck": "a process that did not end, or not after another one was lost",
    "mistaken": "a traceback",
}
_LOSS_TOLERANCE = 1e-5
"""Relative; the largest difference without faults was 2e-7."""
_PREEMPTED = r"^error: preempted; run it again: it resumes from step (?P<step>\d+)$"
_REASONS = {
    "told to end": _PREEMPTED,
    "told and killed": _PREEMPTED,
    "not a number": r"^error: the training diverged: at step \d+ the norm of the gradient is",
    "disk full": r"^error: the disk that holds \S+ is full; free space and run it again",
}
_LOST = r"^error: another process of this training ended; start all of them again"
_NO_SENTENCE = r"(?!)"
_SIGNALS = {
    "killed": (-signal.SIGKILL,),
    "told to end": (-signal.SIGTERM,),
    "told and killed": (-signal.SIGTERM, -signal.SIGKILL),
}


class Result(NamedTuple):
    """The result of a training."""

    weights: Mapping[str, str]
    """The digests of its model's files."""
    losses: Sequence[tuple[int, float]]
    """Steps and losses, in the order in which they were written."""


def result_of(store: Path, step: str) -> Result | None:
    """The result of the only training in a store; null if it has not succeeded."""
    (folder,) = (path for path in (store / "steps" / step).iterdir() if path.is_dir())
    if not (folder / "receipt.json").exists():
        return None
    lines = [line for line in read(folder / "figures.jsonl") if "loss" in line]
    return Result(_digests(folder / "model"), [(line["step"], line["loss"]) for line in lines])


def whole_checkpoints(store: Path) -> dict[str, int]:
    """The newest step by the folder of checkpoints, among those that match their manifests."""
    newest_steps: dict[str, int] = {}
    for manifest in store.glob("steps/*/*/**/checkpoint-*/manifest.json"):
        step = int(manifest.parent.name.rpartition("-")[2])
        if _is_whole(manifest):
            name = str(manifest.parents[1].relative_to(store))
            newest_steps[name] = max(step, newest_steps.get(name, 0))
    return newest_steps


def judge_start(outcome: Outcome, store: Path, before: Mapping[str, int]) -> Iterator[Finding]:
    """Whether it began at the right step; `before` are the complete checkpoints at its start."""
    first_steps: dict[tuple[str, int], int] = {}
    for line in outcome.lines:
        if line["kind"] == "step":
            first_steps.setdefault((line["checkpoints"], line["rank"]), line["step"])
    for (folder, rank), step in first_steps.items():
        expected = before.get(str(Path(folder).relative_to(store)), 0) + 1
        if step != expected:
            yield _finding(
                "repeated", outcome, f"rank {rank} began with step {step}, not {expected}"
            )


def judge_end(outcome: Outcome, after: Mapping[str, int]) -> Iterator[Finding]:
    """Whether each process ended as its fault allows; `after` are the complete checkpoints now."""
    for rank, status in enumerate(outcome.statuses):
        log = outcome.logs[rank].read_text(errors="replace")
        if "Traceback" in log:
            yield _finding("mistaken", outcome, f"rank {rank}: {log[-1000:]}")
        if status is None:
            yield _finding("stuck", outcome, f"rank {rank} did not end")
        elif status > 0 or (status < 0 and status not in _signals(outcome, rank)):
            reason = re.search(_reasons(outcome), log, re.MULTILINE)
            if not reason:
                problem = f"rank {rank} ended with {status}: {log[-500:]}"
                yield _finding("unexplained", outcome, problem)
            elif (step := reason.groupdict().get("step")) and not _has(outcome, after, int(step)):
                problem = f"rank {rank} names step {step} and there are {after}"
                yield _finding("unexplained", outcome, problem)


def judge_result(training: Training, result: Result, expected: Result) -> Iterator[Finding]:
    """Whether a training with faults has the same result as without."""
    name = training.name
    if not training.is_of_several:
        if result.weights != expected.weights:
            yield Finding("different", f"{name}: other weights than without faults", name)
        return
    losses = dict(expected.losses)
    for step, loss in result.losses:
        if not abs(loss - losses[step]) <= _LOSS_TOLERANCE * losses[step]:
            problem = f"{name}: at step {step} the loss is {loss}, without faults {losses[step]}"
            yield Finding("different", problem, name)
    if result.losses[-1][0] != max(losses):
        problem = f"{name} ended at step {result.losses[-1][0]}, and not at {max(losses)}"
        yield Finding("different", problem, name)


def _has(outcome: Outcome, checkpoints: Mapping[str, int], step: int) -> bool:
    """Whether the last stopped training has a complete checkpoint of this step."""
    folder = outcome.steps[-1]["checkpoints"]
    return any(folder.endswith(name) and step == last for name, last in checkpoints.items())


def _signals(outcome: Outcome, rank: int) -> Sequence[int]:
    """The signals that may end this process without a message."""
    fault = outcome.fault
    if fault is None:
        return ()
    if fault.rank != rank:
        return (-signal.SIGTERM,)  # torchrun terminates those that wait for a lost one
    return _SIGNALS.get(fault.kind, ())


def _reasons(outcome: Outcome) -> str:
    """The messages with which a process may end."""
    fault = outcome.fault
    if fault is None:
        return _NO_SENTENCE
    lost_reasons = [_LOST] if len(outcome.statuses) > 1 else []
    return "|".join([_REASONS.get(fault.kind, _NO_SENTENCE), *lost_reasons])


def _finding(kind: str, outcome: Outcome, problem: str) -> Finding:
    attempt = outcome.attempt
    return Finding(kind, f"{attempt.training}, start {attempt.number}: {problem}", attempt.training)


def _is_whole(manifest: Path) -> bool:
    try:
        files = json.loads(manifest.read_bytes())["files"]
    except (ValueError, KeyError):
        return False
    return bool(files == _digests(manifest.parent, without=manifest.name))


def _digests(folder: Path, without: str = "") -> dict[str, str]:
    return {
        str(path.relative_to(folder)): f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in folder.rglob("*")
        if path.is_file() and path.name != without
    }
