"""The agent's own log of its episodes: sampled outputs, actions and observations.

The client library writes it, never the service, so that each log shows the other's losses. A line
is ASCII JSON; texts may be non-Unicode, so this module parses and writes lines itself.
"""

import json
import math
import re
from collections.abc import Callable
from typing import NamedTuple, get_args

from agentworld.records.base import Digest
from agentworld.records.episode import CloseReason, ResetResult, StepResult, text_digest
from agentworld.records.task import Task


class Sampled(NamedTuple):
    """A policy's full output, and the policy; the action is a part of it."""

    text: str
    policy: Digest | None = None
    """The policy's starting weights."""
    policy_step: int | None = None
    """Optimizer steps since then."""


class TrajectoryBegin(NamedTuple):
    """An episode began."""

    run: str
    episode: str
    simulator: Digest
    step: int
    """The number of steps at its start: those of a fork."""
    task: str | None
    """Its task's id; null without a task."""

    @classmethod
    def of(cls, result: ResetResult, task: Task | None) -> "TrajectoryBegin":
        """The fields that an agent knows when its episode begins."""
        name = task.id if task else None
        return cls(result.run, result.episode, result.simulator, result.step, name)


class TrajectoryStep(NamedTuple):
    """A step that was answered."""

    run: str
    episode: str
    step: int
    simulator: Digest
    """The simulator that answered."""
    policy: Digest | None
    policy_step: int | None
    sampled: str
    """The policy's full output, which contains the action."""
    action: str
    """The action that was sent."""
    reward: float | None
    """The reward in the response; null before a task is closed, and without one."""
    observation_digest: Digest
    """The digest of the observation."""
    low_confidence: bool
    """The observation has low confidence."""


class TrajectoryEnd(NamedTuple):
    """The episode has no further step."""

    run: str
    episode: str
    step: int
    """The number of its last step."""
    reason: CloseReason


class TornLine(NamedTuple):
    """An incomplete last line, after a killed writer or a power failure; never written."""

    file: str
    num_bytes: int


TrajectoryLine = TrajectoryBegin | TrajectoryStep | TrajectoryEnd

_LINES: dict[str, type[TrajectoryLine]] = {
    "begin": TrajectoryBegin,
    "step": TrajectoryStep,
    "end": TrajectoryEnd,
}
_KINDS = {line: kind for kind, line in _LINES.items()}


def trajectory_lines(result: StepResult, action: str, sampled: Sampled) -> list[TrajectoryLine]:
    """The lines of an answered step, and of the episode's end if it is the last one."""
    position = result.run, result.episode, result.step
    step = TrajectoryStep(
        *position,
        simulator=result.simulator,
        policy=sampled.policy,
        policy_step=sampled.policy_step,
        sampled=sampled.text,
        action=action,
        reward=result.reward,
        observation_digest=text_digest(result.observation),
        low_confidence=result.low_confidence,
    )
    if not result.done:
        return [step]
    return [step, TrajectoryEnd(*position, "limit" if result.truncated else "done")]


def write_line(line: TrajectoryLine) -> bytes:
    """The line with its newline."""
    fields = {"kind": _KINDS[type(line)], **line._asdict()}
    return json.dumps(fields, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def read_line(data: bytes) -> TrajectoryLine:
    """Parses a line; raises ValueError naming the first invalid field."""
    fields = json.loads(data)
    line_type = _LINES.get(str(fields.pop("kind", None))) if isinstance(fields, dict) else None
    if line_type is None:
        raise ValueError(f"kind is none of {', '.join(_LINES)}")
    if fields.keys() != set(line_type._fields):
        raise ValueError(
            f"a {_KINDS[line_type]} has exactly the fields {', '.join(line_type._fields)}"
        )
    for name, value in fields.items():
        if not _CHECKS[name](value):
            raise ValueError(f"{name}: {str(value)[:80]!r} is none")
    return line_type(**fields)


def _is_text(value: object) -> bool:
    return type(value) is str


def _is_flag(value: object) -> bool:
    return type(value) is bool


def _is_name(value: object) -> bool:
    return type(value) is str and value.isascii() and value.isprintable()


def _is_digest(value: object) -> bool:
    return type(value) is str and re.fullmatch(r"sha256:[0-9a-f]{64}", value) is not None


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return type(value) is int and abs(value) < 2**53


def _or_null(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or check(value)


_CHECKS: dict[str, Callable[[object], bool]] = {
    "run": _is_name,
    "episode": _is_name,
    "simulator": _is_digest,
    "step": _is_count,
    "task": _or_null(_is_text),
    "policy": _or_null(_is_digest),
    "policy_step": _or_null(_is_count),
    "sampled": _is_text,
    "action": _is_text,
    "reward": _or_null(_is_number),
    "observation_digest": _is_digest,
    "low_confidence": _is_flag,
    "reason": get_args(CloseReason).__contains__,
}
