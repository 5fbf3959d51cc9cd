"""Replaces the secrets in a trajectory by placeholders: `[REDACTED:aws-access-key:1]`.

A secret has the same placeholder everywhere in a trajectory, so that an observation which repeats
it stays predictable. A model may learn to copy a placeholder, and a reader sees that it is no
key. All other text stays unchanged.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import pyarrow
from pyarrow import compute
from pydantic import JsonValue

from agentworld.data.filters import FilteredTrajectory
from agentworld.data.json_strings import strings_of
from agentworld.data.labelled_secrets import HINT
from agentworld.data.secret_rules import RULES
from agentworld.data.secret_search import Placeholders
from agentworld.records.base import Digest
from agentworld.records.task import Task
from agentworld.records.tool import Tool
from agentworld.records.trajectory import Span, Trajectory, Turn

_BATCH = 256
_SEPARATOR = "\n\x1e\n"
_HINT = "|".join([HINT, *(rule.hint for rule in RULES)])


class Redaction(NamedTuple):
    """A trajectory without secrets."""

    trajectory: Trajectory
    counts: Counter[str]
    """How many different secrets of each kind it had."""


def redact(trajectory: Trajectory) -> Redaction:
    """Replaces the secrets in every text that a sample could show; equal input, equal result."""
    return _redact(trajectory)


def redact_all(trajectories: Sequence[Trajectory]) -> list[Redaction]:
    """The same for many trajectories; faster, because RE2 finds those that can have secrets."""
    texts = [_SEPARATOR.join(_texts(trajectory)) for trajectory in trajectories]
    hints = compute.match_substring_regex(pyarrow.array(texts), _HINT, ignore_case=True)
    return [
        _redact(trajectory) if hint else Redaction(trajectory, Counter())
        for trajectory, hint in zip(trajectories, hints.to_pylist(), strict=True)
    ]


def redact_trajectories(
    trajectories: Iterable[tuple[Digest, Trajectory]], counts: Counter[str]
) -> Iterator[FilteredTrajectory]:
    """The same trajectories in the same order, without secrets, under the digests as recorded."""
    rest = iter(trajectories)
    while batch := list(islice(rest, _BATCH)):
        redactions = redact_all([trajectory for _, trajectory in batch])
        for (digest, _), redaction in zip(batch, redactions, strict=True):
            for kind, number in redaction.counts.items():
                counts[f"redacted {kind}"] += number
            yield FilteredTrajectory(digest, redaction.trajectory)


def _redact(trajectory: Trajectory) -> Redaction:
    placeholders = Placeholders(_texts(trajectory))
    if placeholders.counts:
        trajectory = _Replacement(placeholders).of_trajectory(trajectory)
    return Redaction(trajectory, placeholders.counts)


def _texts(trajectory: Trajectory) -> Iterator[str]:
    """Every text that a sample, a prompt or an agent's training can show."""
    yield trajectory.initial_state
    for tool in trajectory.tools:
        yield tool.description
        yield from strings_of(tool.input_schema)
        yield from strings_of(tool.output_schema)
    if task := trajectory.task:
        yield from (task.instruction, task.initial_state, task.success.output, task.success.state)
    for turn in trajectory.turns:
        yield from (turn.action, turn.observation, turn.state or "")


class _Replacement:
    """Replaces secrets by placeholders."""

    def __init__(self, placeholders: Placeholders) -> None:
        self._text = placeholders.replace
        self._place = placeholders.move

    def of_trajectory(self, trajectory: Trajectory) -> Trajectory:
        """A copy without the secrets."""
        return trajectory.model_copy(
            update={
                "initial_state": self._text(trajectory.initial_state),
                "tools": tuple(map(self._tool, trajectory.tools)),
                "task": trajectory.task and self._task(trajectory.task),
                "turns": tuple(map(self._turn, trajectory.turns)),
            }
        )

    def _tool(self, tool: Tool) -> Tool:
        fields = {
            "description": self._text(tool.description),
            "input_schema": _map_strings(self._text, tool.input_schema),
            "output_schema": _map_strings(self._text, tool.output_schema),
        }
        return tool.model_copy(update=fields)

    def _task(self, task: Task) -> Task:
        """Redacts a task, except its closing pattern, in which a bracket has a meaning."""
        rule = {name: self._text(getattr(task.success, name)) for name in ("output", "state")}
        success = task.success.model_copy(update=rule)
        texts = {name: self._text(getattr(task, name)) for name in ("instruction", "initial_state")}
        return task.model_copy(update={**texts, "success": success})

    def _turn(self, turn: Turn) -> Turn:
        return turn.model_copy(
            update={
                "action": self._text(turn.action),
                "observation": self._text(turn.observation),
                "state": turn.state and self._text(turn.state),
                "spans": tuple(self._spans(turn)),
            }
        )

    def _spans(self, turn: Turn) -> Iterable[Span]:
        """The spans of an observation, moved to their places in the text without secrets."""
        if not turn.spans:
            return ()
        return [
            span.model_copy(
                update={
                    "start": self._place(turn.observation, span.start),
                    "end": self._place(turn.observation, span.end),
                }
            )
            for span in turn.spans
        ]


def _map_strings(change: Callable[[str], str], value: JsonValue) -> JsonValue:
    match value:
        case str():
            return change(value)
        case list():
            return [_map_strings(change, item) for item in value]
        case dict():
            return {key: _map_strings(change, item) for key, item in value.items()}
    return value
