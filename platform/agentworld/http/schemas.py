"""What requests and answers hold beside the records.

Texts of steps may be no Unicode (a lone surrogate), which JSON can write and pydantic cannot read.
So steps are read and written here by hand.
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
    """A client's name for the step, so that it is taken once; null is the next one, whichever."""
    action: str


class StepRequest(Record):
    """The next action of an episode."""

    episode: str
    action: str
    step: int
    """The number that this step will have: one more than the last answer's. An earlier number
    gets the recorded answer, so that a step is taken once however often it is sent."""


HealthStatus = Literal["healthy", "degraded", "unhealthy"]
"""The words of the OpenEnv protocol:

    healthy    every replica of the engine is asked
    degraded   one failed so often, or is not there, that it is left alone
    unhealthy  all of them did
"""


class Health(Record):
    """The service listens and has verified its files; the status is its engines'."""

    simulator: Digest | None
    """Null where the service has many."""
    status: HealthStatus


class Problem(Record):
    """What went wrong."""

    kind: str
    message: str
    retryable: bool
    retry_after_seconds: float | None = None
    """How long to wait before a retry, where that is known."""


class Failure(Record):
    """The body of every answer that is none."""

    error: Problem


def _shape(shape: type[NamedTuple], **others: object) -> type[Record]:
    """How a tuple that is written by hand is declared: its fields by name, in place of a list."""
    hints = {**get_type_hints(shape, include_extras=True), **others}
    fields: dict[str, Any] = {name: (hint, ...) for name, hint in hints.items()}
    return create_model(shape.__name__, __base__=Record, **fields)


STEP_RESULT = _shape(StepResult)
_STEP = _shape(EpisodeStep, confidence=_shape(Confidence), usage=_shape(Usage))
EPISODE = _shape(Episode, steps=GenericAlias(list, _STEP), head=Digest)

_encode = json.JSONEncoder(separators=(",", ":")).encode
_STEP_FIELDS = {"episode": str, "action": str, "step": int}


def read_step(body: bytes) -> tuple[str, Request]:
    """The episode and the request for it; raises InputError naming the first wrong field."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the request is no JSON: {error}") from error
    if not isinstance(fields, dict) or fields.keys() != _STEP_FIELDS.keys():
        raise InputError(f"a step has exactly the fields {', '.join(_STEP_FIELDS)}")
    for name, kind in _STEP_FIELDS.items():
        if type(fields[name]) is not kind:
            raise InputError(f"{name} is a {kind.__name__}, not {str(fields[name])[:80]!r}")
    return fields["episode"], Request(fields["step"], fields["action"])


def write_step(result: StepResult) -> bytes:
    """A step's answer as JSON, in ASCII."""
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
