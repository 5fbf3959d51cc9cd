"""What is counted of one simulator, in plain numbers, which become metrics when somebody asks.

The client library's own counters cost several times as much and lock, while all of this is one
event loop's.
"""

from bisect import bisect_left
from typing import NamedTuple, get_args

from agentworld.records.episode import CloseReason
from agentworld.records.usage import Usage

PROTOCOLS = ("http", "openenv", "openai", "mcp")
"""Those that every service speaks."""

# In seconds: from a step that no engine was asked for to one that waited long for its turn.
BOUNDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1, 2.5, 5, 10, 25, 60, 120),
)


class Durations:
    """How often something took so long."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        """Of those within each bound and not within the one before it; the last has none."""
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        """Counts one more."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.sum += seconds


class Timings(NamedTuple):
    """How long a step was where, in seconds; null where it never was, as a replay in an engine."""

    queue: float | None = None
    """Waiting for the episode's step before it, and for its turn at the engine."""
    engine: float | None = None
    """With the engine: all samples, all tries."""
    ledger: float | None = None
    """Until it was durable."""
    total: float | None = None
    """All of it."""


_NOTHING_USED = Usage()


class Counts:
    """Of one simulator; every number is there from the start, at 0."""

    def __init__(self) -> None:
        self.steps = dict.fromkeys(PROTOCOLS, 0)
        self.durations = {phase: Durations() for phase in Timings._fields}
        self.tokens = {"input": 0, "cached": 0, "output": 0}
        self.num_opened = 0
        self.ended = dict.fromkeys(get_args(CloseReason), 0)
        self._durations = tuple(self.durations.values())

    def count_step(self, protocol: str, timings: Timings, usage: Usage = _NOTHING_USED) -> None:
        """A step was answered."""
        self.steps[protocol] = self.steps.get(protocol, 0) + 1
        for durations, seconds in zip(self._durations, timings, strict=True):
            if seconds is not None:
                durations.add(seconds)
        # No token is in two of these, so that their sum is all of them.
        self.tokens["input"] += usage.input_tokens - usage.cached_tokens
        self.tokens["cached"] += usage.cached_tokens
        self.tokens["output"] += usage.output_tokens

    def begin(self) -> None:
        """An episode was opened."""
        self.num_opened += 1

    def end(self, reason: CloseReason, number: int = 1) -> None:
        """So many episodes came to their end."""
        self.ended[reason] += number
