"""What people's names for simulators mean, by whose word, and what a move had to show."""

import hashlib
from typing import Annotated, NamedTuple, Self

from pydantic import Field, StringConstraints, ValidationError

from agentworld.errors import InputError
from agentworld.records.base import Digest, Name, Record

Words = Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=r"^[^\x00]*$")]


class Canary(Record):
    """A second simulator that a part of all new runs is opened with."""

    simulator: Digest
    percent: int = Field(ge=1, le=99)
    """Of runs, and never of a run's episodes."""


class Gate(Record):
    """What a report has to show before a name may move."""

    metric: Words
    """A figure's name in a report, as `live_gain` or `exact_match`."""
    least: float = Field(allow_inf_nan=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """From METRIC=LEAST; raises InputError."""
        metric, _, least = text.rpartition("=")
        try:
            return cls.model_validate({"metric": metric, "least": least})
        except ValidationError as error:
            raise InputError(
                f"{text!r} is no gate; write METRIC=LEAST, as live_gain=0.2, with the name of a"
                " figure and a number"
            ) from error


class Judged(Gate):
    """A gate, and what the report showed."""

    found: float | None = None
    """Null where no report told this figure."""

    @property
    def passed(self) -> bool:
        """Whether the figure is there and large enough."""
        return self.found is not None and self.found >= self.least


class AliasMove(Record):
    """What a name shall mean from now on."""

    simulator: Digest
    canary: Canary | None = None
    by: Words
    """Who wants it so."""
    gate: tuple[Gate, ...] = Field((), max_length=64)
    report: Digest | None = None
    """Of the evaluation that the gate is judged by."""
    override: Words | None = None
    """Why it may move whatever the gate says."""


class Meaning(NamedTuple):
    """What a name means."""

    simulator: Digest
    canary: Canary | None = None


def gets_canary(alias: str, run: str, percent: int) -> bool:
    """Whether a run that is opened by an alias gets its canary.

    The run's name decides: told again it gets the same, and where the part grows, every run that
    got the canary gets it still.
    """
    place = int.from_bytes(hashlib.sha256(f"{alias} {run}".encode()).digest()[:8]) % 100
    return place < percent


class AliasChange(Record):
    """From then on the alias meant this simulator."""

    alias: Name
    simulator: Digest
    set_by: Name
    at: str
    canary: Canary | None = None
    report: Digest | None = None
    gate: tuple[Judged, ...] = ()
    """As it was judged by the report."""
    override: Name | None = None
    ended: bool = False
    """The name was taken away: it means nothing, and had meant this."""

    @property
    def meaning(self) -> Meaning | None:
        """What it means from then on, if anything."""
        return None if self.ended else Meaning(self.simulator, self.canary)


class Use(Record):
    """Who needs a simulator now."""

    open_runs: int
    open_episodes: int
