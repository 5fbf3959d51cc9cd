"""The service's metrics for Prometheus: counts and times, with labels of few values.

No label is an episode, a run or a path, so the number of series for each simulator stays constant.
"""

import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Literal, NamedTuple, get_args

from prometheus_client.core import InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from agentworld import __version__
from agentworld.engine.breaker import State
from agentworld.errors import StoreError
from agentworld.records.base import Digest
from agentworld.serving.telemetry.counts import Counts, Durations
from agentworld.serving.telemetry.families import counter, gauge, histogram

Refusal = Literal[
    "input", "conflict", "not-found", "unauthorised", "forbidden", "capacity", "context", "limit"
]
"""Errors of the caller, or limits: over HTTP, 4xx."""

Fault = Literal[
    "engine",
    "starting",
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
"""Errors of the engine, the ledger or the service: over HTTP, 5xx."""

_REFUSALS = "Requests that the sender must correct or send later; over HTTP, 4xx."
_FAULTS = (
    "Requests that failed at an engine, in its model, at the source of credentials (unavailable),"
    " at the ledger (store), by a timeout of their protocol (unknown) or by a bug of ours"
    " (internal); over HTTP, 5xx."
)
_ENGINE_STATES = (
    "1 for the state of the engine's replica at this address, 0 for the others: closed is asked;"
    " open failed too often or is missing, and is not asked for a while; half-open is tried again."
)

States = Callable[[], Mapping[str, State]]
"""The breaker state of each replica of an engine, by its address."""


class MetricsResponse(NamedTuple):
    """The response to a scrape."""

    body: bytes
    content_type: str


class Metrics:
    """Counts of one process: for each simulator, and failures for all of them."""

    def __init__(self, open_episodes: Callable[[], Mapping[Digest, int]]) -> None:
        """`open_episodes` returns the number of open episodes of each simulator that has any."""
        self._ask_open = open_episodes
        self._counts: dict[Digest, Counts] = {}
        self._states: dict[Digest, States] = {}
        self._open: Mapping[Digest, int] = {}
        self._refusals = dict.fromkeys(get_args(Refusal), 0)
        self._faults = dict.fromkeys(get_args(Fault), 0)

    def serve(self, simulator: Digest, states: States) -> Counts:
        """Adds a simulator with its engine; returns its counts."""
        self._states[simulator] = states
        return self.of(simulator)

    def of(self, simulator: Digest) -> Counts:
        """The counts of a simulator, also of one that is not served here."""
        counts = self._counts.get(simulator)
        if counts is None:
            counts = self._counts[simulator] = Counts()
        return counts

    def count_problem(self, kind: str) -> None:
        """Counts a response with a problem of this kind."""
        counts = self._refusals if kind in self._refusals else self._faults
        counts[kind] += 1

    def render(self, accept: str = "") -> MetricsResponse:
        """The response to a scrape, in the form of its `Accept` header."""
        encode, content_type = choose_encoder(accept)
        return MetricsResponse(encode(self), content_type)

    def collect(self) -> Iterator[Metric]:
        """All metrics; the client library calls it in its own thread."""
        # copied, because simulators may be added meanwhile
        yield from _of_simulators(self._counts.copy())
        with suppress(StoreError):  # without the ledger, the other metrics are still wanted
            documentation = (
                "Open episodes in the ledger. Every replica reports the same number: use max by"
                " (simulator), not the sum. A service of many simulators also reports those whose"
                " engine is not connected."
            )
            values = _by_label(self._open_episodes())
            yield gauge("agentworld_open_episodes", documentation, ("simulator",), values)
        yield counter("agentworld_refusals", _REFUSALS, ("kind",), _by_label(self._refusals))
        yield counter("agentworld_faults", _FAULTS, ("kind",), _by_label(self._faults))
        served = self._states.copy()
        labels = ("simulator", "engine", "state")
        yield gauge("agentworld_engine_state", _ENGINE_STATES, labels, _states(served))
        info = InfoMetricFamily("agentworld_simulator", "1 for each simulator that is served.")
        for simulator in served:
            info.add_metric((), {"simulator": simulator})
        yield info
        build = {"version": __version__, "python": platform.python_version()}
        yield InfoMetricFamily(
            "agentworld_build", "1, with the versions of the service and of Python.", build
        )

    def _open_episodes(self) -> Mapping[Digest, int]:
        """The open episodes of the served simulators, and 0 for others that had one before."""
        zeros = dict.fromkeys((*self._states.copy(), *self._open), 0)
        self._open = zeros | dict(self._ask_open())
        return self._open


def _of_simulators(counts: Mapping[Digest, Counts]) -> Iterator[Metric]:
    def by_value(values: Callable[[Counts], Mapping[str, float]]) -> dict[tuple[str, ...], float]:
        return {
            (simulator, value): count
            for simulator, simulator_counts in counts.items()
            for value, count in values(simulator_counts).items()
        }

    label = "simulator"
    yield counter(
        "agentworld_steps", "Answered steps.", (label, "protocol"), by_value(lambda c: c.steps)
    )
    documentation = (
        "Seconds that each step waited for its turn (queue), was with the engine in all tries"
        " (engine), needed to become durable (ledger), and took in total. A step without a phase,"
        " such as a replay without an engine, is not counted in it."
    )
    durations: dict[tuple[str, ...], Durations] = {
        (simulator, phase): seconds
        for simulator, simulator_counts in counts.items()
        for phase, seconds in simulator_counts.durations.items()
    }
    yield histogram("agentworld_step_duration_seconds", documentation, (label, "phase"), durations)
    documentation = (
        "Tokens of the answered steps: prompt tokens that were computed (input), prompt tokens from"
        " the engine's cache (cached), and answers (output). The three do not overlap."
    )
    yield counter("agentworld_tokens", documentation, (label, "kind"), by_value(lambda c: c.tokens))
    openings = _by_label(
        {simulator: simulator_counts.num_opened for simulator, simulator_counts in counts.items()}
    )
    yield counter("agentworld_episodes_opened", "Opened episodes.", (label,), openings)
    ended = by_value(lambda c: c.ended)
    documentation = (
        "Ended episodes: with their task (done), at their turn limit (limit), by their client"
        " (closed), or after inactivity (expired)."
    )
    yield counter("agentworld_episodes_ended", documentation, (label, "reason"), ended)


def _by_label(counts: Mapping[str, float]) -> dict[tuple[str, ...], float]:
    return {(value,): count for value, count in counts.items()}


def _states(served: Mapping[Digest, States]) -> dict[tuple[str, ...], float]:
    return {
        (simulator, engine, state): float(state == now)
        for simulator, states in served.items()
        for engine, now in states().items()
        for state in get_args(State)
    }
