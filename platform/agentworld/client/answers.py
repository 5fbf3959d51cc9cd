"""Parses a simulator's responses.

Texts may have lone surrogates, which pydantic refuses, so this module parses them itself. A
ValueError says what is wrong; the client adds the source.
"""

import json
import math
from typing import Any

from pydantic import BaseModel, ValidationError

from agentworld.errors import SimulatorError
from agentworld.records.base import Digest
from agentworld.records.episode import (
    Confidence,
    Episode,
    EpisodeOpening,
    EpisodeStep,
    ResetResult,
    StepResult,
)
from agentworld.records.run import AgentRun, OpenedRun
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.usage import Usage

_KINDS = {
    "simulator": str,
    "run": str,
    "episode": str,
    "step": int,
    "observation": str,
    "done": bool,
    "truncated": bool,
    "low_confidence": bool,
}
_NUMBERS = ("reward", "mean_logprob", "agreement")


class _Problem(BaseModel):
    kind: str
    message: str
    retryable: bool
    retry_after_seconds: float | None = None


class _Failure(BaseModel):
    error: _Problem


def read_step(body: bytes, episode: str, number: int) -> StepResult:
    """Parses the response to a step; raises ValueError if it belongs to another step."""
    fields = _object(body)
    missing = [name for name in StepResult._fields if name not in fields]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    for name, kind in _KINDS.items():
        if type(fields[name]) is not kind:
            raise ValueError(f"{name}: {str(fields[name])[:80]!r} is not of type {kind.__name__}")
    for name in _NUMBERS:
        if not _is_number_or_null(fields[name]):
            raise ValueError(f"{name}: {str(fields[name])[:80]!r} is not a number")
    if (fields["episode"], fields["step"]) != (episode, number):
        raise ValueError(
            f"it is of step {fields['step']} of episode {fields['episode']!r}, and step {number} of"
            f" {episode} was asked"
        )
    return StepResult(**{name: fields[name] for name in StepResult._fields})


def read_episode(body: bytes) -> Episode:
    """Parses an episode and checks that its steps are consecutive."""
    fields = _object(body)
    try:
        episode = Episode(
            id=fields["id"],
            simulator=fields["simulator"],
            run=fields["run"],
            opening=fields["opening"] and EpisodeOpening.model_validate(fields["opening"]),
            opening_digest=fields["opening_digest"],
            num_copied=fields["num_copied"],
            steps=tuple(_step(step) for step in fields["steps"]),
            closed=fields["closed"],
        )
        intact = episode.intact and episode.head == fields["head"]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is no episode ({type(error).__name__}: {error})") from error
    if not intact:
        raise ValueError("the steps of the episode do not follow from each other")
    return episode


def read_failure(status: int, body: bytes) -> SimulatorError:
    """The error of a response; a response without our error body gets a general error."""
    try:
        problem = _Failure.model_validate_json(body).error
    except ValidationError:
        text = " ".join(body.decode(errors="replace").split())[:200]
        return SimulatorError(
            f"the simulator answered with status {status}: {text!r}",
            kind="protocol",
            retryable=status >= 500,
        )
    return SimulatorError(
        problem.message,
        kind=problem.kind,
        retryable=problem.retryable,
        retry_after_seconds=problem.retry_after_seconds,
    )


def simulator_of(answer: object) -> Digest | None:
    """The simulator's digest in a response; null if it has none."""
    match answer:
        case OpenedRun(run=run):
            return run.simulator
        case AgentRun() | ResetResult() | StepResult() | Episode():
            return answer.simulator
        case SimulatorManifest():
            return answer.digest
    return None


def _object(body: bytes) -> dict[str, Any]:
    fields = json.loads(body)
    if not isinstance(fields, dict):
        raise ValueError(f"{str(fields)[:80]!r} is no object")
    return fields


def _step(fields: dict[str, Any]) -> EpisodeStep:
    records = {"confidence": Confidence(**fields["confidence"]), "usage": Usage(**fields["usage"])}
    return EpisodeStep(**{**fields, **records})


def _is_number_or_null(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or type(value) is int
