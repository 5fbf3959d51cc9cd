"""What people's names for simulators mean, by whose word, and what a move had to show."""

from typing import Annotated, NamedTuple

from pydantic import Field, StringConstraints

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
