"""What people's names for simulators mean, by whose word, and what a move had to show."""

import hashlib
from typing import Annotated, NamedTuple

from pydantic import Field, StringConstraints

from agentworld.records.base import Digest, Name, Record, ShortText
from agentworld.records.gate import Gate, GateResult

ObjectRequest = Annotated[str, StringConstraints(pattern="^[0-9A-Za-z-]{1,64}/[0-9]{1,19}$")]
"""A spec that somebody wrote to an object of a cluster: the object's `UID/GENERATION`."""


class Canary(Record):
    """A second simulator that a part of all new runs is opened with."""

    simulator: Digest
    percent: int = Field(ge=1, le=99)
    """Of runs, and never of a run's episodes."""


class AliasMove(Record):
    """What a name shall mean from now on."""

    simulator: Digest
    canary: Canary | None = None
    by: ShortText
    """Who wants it so."""
    gate: tuple[Gate, ...] = Field((), max_length=64)
    report: Digest | None = None
    """Of the evaluation that the gate is judged by."""
    override: ShortText | None = None
    """Why it may move whatever the gate says."""
    request: ObjectRequest | None = None
    """The object by which it is asked for; null where a command asks."""


class Meaning(NamedTuple):
    """What a name means."""

    simulator: Digest
    canary: Canary | None = None

    @property
    def simulators(self) -> tuple[Digest, ...]:
        """Those that new runs are opened with."""
        return (self.simulator, self.canary.simulator) if self.canary else (self.simulator,)


def gets_canary(alias: str, run: str, percent: int) -> bool:
    """Whether a run that is opened by an alias gets its canary.

    The run's name decides: told again it gets the same, and where the part grows, every run that
    got the canary gets it still.
    """
    bucket = int.from_bytes(hashlib.sha256(f"{alias} {run}".encode()).digest()[:8]) % 100
    return bucket < percent


class AliasChange(Record):
    """From then on the alias meant this simulator."""

    alias: Name
    simulator: Digest
    set_by: Name
    at: Name
    canary: Canary | None = None
    report: Digest | None = None
    gate: tuple[GateResult, ...] = ()
    """As it was judged by the report."""
    override: Name | None = None
    request: ObjectRequest | None = None
    """The object by which it was asked for; null where a command did."""
    ended: bool = False
    """The name was taken away: it means nothing, and had meant this."""

    @property
    def meaning(self) -> Meaning | None:
        """What it means from then on, if anything."""
        return None if self.ended else Meaning(self.simulator, self.canary)

    @property
    def text(self) -> str:
        """The change as a clause."""
        meaning = "nothing" if self.ended else self.simulator
        return f"alias {self.alias!r} meant {meaning} from {self.at} on, by {self.set_by!r}"


class SimulatorUse(Record):
    """Who needs a simulator now."""

    open_runs: int
    open_episodes: int
    aliases: tuple[str, ...] = ()
    """The names that mean it now, or have it as their canary."""
