"""Counts of one simulator as plain numbers, converted to metrics when they are scraped.

The client library's own counters cost several times as much and lock, while all counts belong to
one event loop.
"""

from bisect import bisect_left
from typing import NamedTuple, get_args

from agentworld.records.episode import CloseReason
from agentworld.records.usage import Usage

PROTOCOLS = ("http", "openenv", "openai", "mcp")
"""The protocols of every service."""

# In seconds: from a step without an engine to one that waited long in the queue.
BOUNDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1, 2.5, 5, 10, 25, 60, 120),
)


class Durations:
    """A histogram of durations."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        """The number of durations in each bucket; the last bucket has no bound."""
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        """Counts one duration."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.sum += seconds


class Timings(NamedTuple):
    """The durations of a step's parts in seconds; null if a part did not happen, such as the
    engine's in a replay.
    """

    queue: float | None = None
    """Waiting for the episode's earlier step, and in the engine's queue."""
    engine: float | None = None
    """In the engine: all samples and retries."""
    ledger: float | None = None
    """Until the step was durable."""
    total: float | None = None
    """The whole step."""


_NOTHING_USED = Usage()


class Counts:
    """The counts of one simulator; every number exists from the start, at 0."""

    def __init__(self) -> None:
        self.steps = dict.fromkeys(PROTOCOLS, 0)
        self.durations = {phase: Durations() for phase in Timings._fields}
        self.tokens = {"input": 0, "cached": 0, "output": 0}
        self.num_opened = 0
        self.ended = dict.fromkeys(get_args(CloseReason), 0)
        self._durations = tuple(self.durations.values())

    def count_step(self, protocol: str, timings: Timings, usage: Usage = _NOTHING_USED) -> None:
        """Counts an answered step."""
        self.steps[protocol] = self.steps.get(protocol, 0) + 1
        for durations, seconds in zip(self._durations, timings, strict=True):
            if seconds is not None:
                durations.add(seconds)
        # Each token counts in one of these only, so that their sum is the total.
        self.tokens["input"] += usage.input_tokens - usage.cached_tokens
        self.tokens["cached"] += usage.cached_tokens
        self.tokens["output"] += usage.output_tokens

    def begin(self) -> None:
        """Counts an opened episode."""
        self.num_opened += 1

    def end(self, reason: CloseReason, number: int = 1) -> None:
        """Counts ended episodes."""
        self.ended[reason] += number
