"""Requests and responses beside the records.

Texts of steps may have lone surrogates, which JSON can write and pydantic cannot read. So this
module reads and writes steps itself.
"""

import json
from types import GenericAlias
from typing import Any, Literal, NamedTuple, get_type_hints

from pydantic import create_model

from agentworld.errors import InputError
from agentworld.records.base import Digest, Record
from agentworld.records.episode import Confidence, Episode, EpisodeStep, StepResult
from agentworld.records.usage import Usage


class Request(NamedTuple):
    """The next step of an episode, or a repetition of an earlier one."""

    number: int | None
    """The client's number for the step, for safe retries; null is the next step."""
    action: str


class StepRequest(Record):
    """The next action of an episode."""

    episode: str
    action: str
    step: int
    """The number that this step will have: one more than the last answer's. An earlier number
    gets the recorded answer, so that a step is taken once however often it is sent."""


HealthStatus = Literal["healthy", "degraded", "unhealthy"]
"""The states of the OpenEnv protocol:

    healthy    every replica of the engine gets requests
    degraded   one replica gets no requests, because it failed repeatedly or does not exist
    unhealthy  no replica gets requests
"""


class Health(Record):
    """The service has verified its files and accepts requests; the status is its engines'."""

    simulator: Digest | None
    """Null if the service has several."""
    status: HealthStatus


class Problem(Record):
    """An error."""

    kind: str
    message: str
    retryable: bool
    retry_after_seconds: float | None = None
    """Seconds until a retry, if known."""


class Failure(Record):
    """The body of every error response."""

    error: Problem


def _shape(shape: type[NamedTuple], **others: object) -> type[Record]:
    """A tuple as a record, so that its schema has its fields by name instead of a list."""
    hints = {**get_type_hints(shape, include_extras=True), **others}
    fields: dict[str, Any] = {name: (hint, ...) for name, hint in hints.items()}
    return create_model(shape.__name__, __base__=Record, **fields)


STEP_RESULT = _shape(StepResult)
_STEP = _shape(EpisodeStep, confidence=_shape(Confidence), usage=_shape(Usage))
EPISODE = _shape(Episode, steps=GenericAlias(list, _STEP), head=Digest)

_encode = json.JSONEncoder(separators=(",", ":")).encode
_STEP_FIELDS = {"episode": str, "action": str, "step": int}


def read_step(body: bytes) -> tuple[str, Request]:
    """Parses the episode and the step of a request; raises InputError with the first problem."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the request is not JSON: {error}") from error
    if not isinstance(fields, dict) or fields.keys() != _STEP_FIELDS.keys():
        raise InputError(f"a step has exactly the fields {', '.join(_STEP_FIELDS)}")
    for name, kind in _STEP_FIELDS.items():
        if type(fields[name]) is not kind:
            raise InputError(f"{name} is a {kind.__name__}, not {str(fields[name])[:80]!r}")
    return fields["episode"], Request(fields["step"], fields["action"])


def write_step(result: StepResult) -> bytes:
    """A step's response as JSON, in ASCII."""
    return _encode(result._asdict()).encode()


def write_episode(episode: Episode) -> bytes:
    """An episode as JSON, in ASCII."""
    steps = [
        {**step._asdict(), "confidence": step.confidence._asdict(), "usage": step.usage._asdict()}
        for step in episode.steps
    ]
    fields = {
        "id": episode.id,
        "simulator": episode.simulator,
        "run": episode.run,
        "opening": episode.opening and episode.opening.model_dump(mode="json"),
        "opening_digest": episode.opening_digest,
        "num_copied": episode.num_copied,
        "steps": steps,
        "closed": episode.closed,
        "head": episode.head,
    }
    return _encode(fields).encode()
