"""What goes over the wire beside the records. Texts of steps may be no Unicode (a lone surrogate),
which JSON can write and pydantic cannot read, so that steps are read and written here by hand.
"""

import json
from typing import Literal

from agentworld.engine.breaker import State
from agentworld.errors import InputError
from agentworld.records.base import Digest, Record
from agentworld.records.episode import Episode, StepResult
from agentworld.simulate.session import Request


class StepRequest(Record):
    """The next action of an episode."""

    episode: str
    action: str
    step: int
    """The number that this step will have: one more than the last answer's. An earlier number
    gets the recorded answer, so that a step is taken once however often it is sent."""


class Health(Record):
    """The service listens and has verified its files, whatever became of its engines since."""

    simulator: Digest
    status: Literal["ready"] = "ready"
    engines: dict[str, State]
    """By address; one that is `open` failed so often that it is left alone for a while."""


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


_written = json.JSONEncoder(separators=(",", ":")).encode
_STEP_FIELDS = {"episode": str, "action": str, "step": int}


def read_step(body: bytes) -> tuple[str, Request]:
    """The episode and the request for it; raises InputError naming the first wrong field."""
    try:
        fields = json.loads(body)
    except ValueError as error:
        raise InputError(f"the request is no JSON: {error}") from error
    if not isinstance(fields, dict) or fields.keys() != _STEP_FIELDS.keys():
        raise InputError(f"a step has exactly the fields {', '.join(_STEP_FIELDS)}")
    for name, kind in _STEP_FIELDS.items():
        if type(fields[name]) is not kind:
            raise InputError(f"{name} is a {kind.__name__}, not {str(fields[name])[:80]!r}")
    return fields["episode"], Request(fields["step"], fields["action"])


def write_step(result: StepResult) -> bytes:
    """A step's answer as JSON, in ASCII."""
    return _written(result._asdict()).encode()


def write_episode(episode: Episode) -> bytes:
    """An episode as JSON, in ASCII."""
    steps = [{**step._asdict(), "confidence": step.confidence._asdict()} for step in episode.steps]
    told = {
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
    return _written(told).encode()
