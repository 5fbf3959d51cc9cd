"""The operator's metrics for Prometheus: leadership, rounds by result, and queue depth."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agentworld.errors import InputError
from agentworld_operator.work_queue import RoundResult


class Queue(Protocol):
    """The counts of a queue."""

    @property
    def depth(self) -> int: ...

    @property
    def results(self) -> Mapping[RoundResult, int]: ...


class OperatorMetrics(Collector):
    """Collected at each scrape; a replica that does not lead has no queues."""

    def __init__(self) -> None:
        self._queues: Mapping[str, Queue] | None = None

    def lead(self, queues: Mapping[str, Queue]) -> None:
        """Sets the queues of a replica that leads, one for each kind."""
        self._queues = queues

    def collect(self) -> Iterator[Metric]:
        """All metrics of one moment."""
        leader = "1 if this replica leads, 0 if it waits for its turn."
        is_leader = 0 if self._queues is None else 1
        yield GaugeMetricFamily("agentworld_operator_leader", leader, is_leader)
        rounds = CounterMetricFamily(
            "agentworld_operator_reconciles",
            "Rounds for one resource: ok, failed and to be tried again, or ended by a bug of ours.",
            labels=["kind", "result"],
        )
        depth = GaugeMetricFamily(
            "agentworld_operator_queue_depth",
            "Resources that wait for a round now.",
            labels=["kind"],
        )
        for kind, queue in (self._queues or {}).items():
            depth.add_metric([kind], queue.depth)
            for result, count in queue.results.items():
                rounds.add_metric([kind, result], count)
        yield from (rounds, depth)


@asynccontextmanager
async def serve_metrics(metrics: OperatorMetrics, port: int | None) -> AsyncIterator[None]:
    """Answers `GET /metrics` on every address while the block runs; does nothing without a port.

    Raises InputError if it cannot listen.
    """
    if port is None:
        yield
        return
    registry = CollectorRegistry()
    registry.register(metrics)
    try:
        server, thread = start_http_server(port, registry=registry)
    except OSError as error:
        raise InputError(
            f"the metrics cannot listen on port {port} ({error.strerror}); name another port"
        ) from error
    try:
        yield
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        thread.join()
