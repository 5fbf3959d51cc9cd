"""What a service tells a Prometheus server: counts and times, by labels of few values.

No label is an episode, a run or a path, so that a service has as many series after a year as after
a minute. A step is counted in plain numbers, which become metrics when somebody asks: the client
library's own counters cost several times as much and lock, while all of this is one event loop's.
"""

import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Literal, NamedTuple, get_args

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder

from agentworld import __version__
from agentworld.engine.breaker import State
from agentworld.errors import StoreError
from agentworld.records.base import Digest
from agentworld.records.episode import CloseReason
from agentworld.records.usage import Usage
from agentworld.simulate.families import Durations, counter, histogram, one_of

Door = Literal["http", "openenv", "openai", "mcp"]

Refusal = Literal[
    "input", "conflict", "not-found", "unauthorised", "forbidden", "capacity", "context", "limit"
]
"""What is the caller's to mend, or a limit that held: over HTTP, 4xx."""

Fault = Literal[
    "engine",
    "slow",
    "open",
    "refused",
    "cut-off",
    "unparsable",
    "unsure",
    "unavailable",
    "store",
    "unknown",
    "internal",
]
"""What is the engine's, the ledger's or our own: over HTTP, 5xx."""


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


class Rendered(NamedTuple):
    """The answer to a scrape."""

    body: bytes
    content_type: str


class Metrics:
    """Counts what one service does. Every series is there from the start, at 0."""

    def __init__(
        self,
        simulator: Digest,
        *,
        open_episodes: Callable[[], int],
        states: Callable[[], Mapping[str, State]],
    ) -> None:
        """A scrape asks for the number of open episodes, and for each engine's state by address."""
        self._simulator = simulator
        self._open_episodes = open_episodes
        self._states = states
        self._steps = dict.fromkeys(get_args(Door), 0)
        self._durations = tuple(Durations() for _ in Timings._fields)
        self._tokens = {"input": 0, "cached": 0, "output": 0}
        self._begun = 0
        self._ended = dict.fromkeys(get_args(CloseReason), 0)
        self._refusals = dict.fromkeys(get_args(Refusal), 0)
        self._faults = dict.fromkeys(get_args(Fault), 0)

    def stepped(self, door: Door, timings: Timings, usage: Usage = _NOTHING_USED) -> None:
        """A step was answered."""
        self._steps[door] += 1
        for durations, seconds in zip(self._durations, timings, strict=True):
            if seconds is not None:
                durations.add(seconds)
        # No token is in two of these, so that their sum is all of them.
        self._tokens["input"] += usage.input_tokens - usage.cached_tokens
        self._tokens["cached"] += usage.cached_tokens
        self._tokens["output"] += usage.output_tokens

    def began(self) -> None:
        """An episode was opened."""
        self._begun += 1

    def ended(self, reason: CloseReason, number: int = 1) -> None:
        """So many episodes came to their end."""
        self._ended[reason] += number

    def refused(self, kind: Refusal) -> None:
        """A request was answered with what its sender has to mend or to wait for."""
        self._refusals[kind] += 1

    def failed(self, kind: Fault) -> None:
        """A request was answered with a failure that its sender has no part in."""
        self._faults[kind] += 1

    def told(self, kind: str) -> None:
        """A request was answered with a problem of this kind, whichever of the two that is."""
        counts = self._refusals if kind in self._refusals else self._faults
        counts[kind] += 1

    def render(self, accept: str = "") -> Rendered:
        """The answer to a scrape, in the form that its `Accept` names."""
        encode, content_type = choose_encoder(accept)
        return Rendered(encode(self), content_type)

    def collect(self) -> Iterator[Metric]:
        """Everything; the client library asks for it."""
        yield counter("agentworld_steps", "Steps answered.", "door", self._steps)
        durations = dict(zip(Timings._fields, self._durations, strict=True))
        yield histogram(
            "agentworld_step_duration_seconds", "How long steps were where.", "phase", durations
        )
        yield counter("agentworld_tokens", "Tokens of the steps answered.", "kind", self._tokens)
        yield CounterMetricFamily("agentworld_episodes_begun", "Episodes opened.", self._begun)
        yield counter("agentworld_episodes_ended", "Episodes ended.", "reason", self._ended)
        with suppress(StoreError):  # without the ledger, what else there is to tell is wanted
            number = self._open_episodes()
            yield GaugeMetricFamily("agentworld_open_episodes", "Episodes that are open.", number)
        yield counter("agentworld_refusals", "Requests refused.", "kind", self._refusals)
        yield counter("agentworld_faults", "Requests that failed.", "kind", self._faults)
        about = "1 for the state that an engine is in."
        yield one_of("agentworld_engine_state", about, "engine", self._states(), get_args(State))
        told = {"digest": self._simulator}
        yield InfoMetricFamily("agentworld_simulator", "The simulator that is served.", told)
        build = {"version": __version__, "python": platform.python_version()}
        yield InfoMetricFamily("agentworld_build", "What the service runs on.", build)
