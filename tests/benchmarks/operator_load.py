"""Hundreds of Simulators on a real API server, and the time until an operator has processed
each.
"""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from machines.control_plane import ControlPlane
from make.operator import Namespace
from make.simulator import simulator
from waiting import wait_for

_WRITES = ("create", "update", "patch", "delete")
_WRITERS = 8
_LONGEST_SECONDS = 300.0


class Burst(NamedTuple):
    """Created Simulators, and the time until all were processed."""

    number: int
    seconds: float
    """From the first creation."""
    waits: list[float]
    """For each one, from its creation."""
    requests: int
    """The operator's requests to the API server, including reads and watches."""


def burst(
    cluster: ControlPlane, namespace: Namespace, number: int, *, a_second: float | None = None
) -> Burst:
    """Creates `number` Simulators, as fast as possible or at a rate."""
    names = [f"world-{number}-{item:04d}" for item in range(number)]
    creation_times: dict[str, float] = {}

    def create(name: str) -> None:
        namespace.create(simulator(name))
        creation_times[name] = time.perf_counter()

    with _reconciled(namespace) as reconcile_times:
        before = num_requests(cluster, namespace)
        start = time.perf_counter()
        with ThreadPoolExecutor(_WRITERS) as writers:
            for index, name in enumerate(names):
                if a_second:
                    time.sleep(max(0.0, start + index / a_second - time.perf_counter()))
                writers.submit(create, name)
        wait_for(lambda: reconcile_times.keys() >= {*names}, _LONGEST_SECONDS)
        requests = num_requests(cluster, namespace) - before
    waits = [max(0.0, reconcile_times[name] - creation_times[name]) for name in names]
    end = max(reconcile_times[name] for name in names)
    return Burst(number, end - start, waits, requests)


@contextmanager
def _reconciled(namespace: Namespace) -> Iterator[dict[str, float]]:
    """The time at which the status of each Simulator first had a digest, from a watch."""
    times: dict[str, float] = {}
    stop = threading.Event()

    def watch() -> None:
        for resource in namespace.watch("Simulator", stop):
            if (resource.get("status") or {}).get("digest"):
                times.setdefault(resource["metadata"]["name"], time.perf_counter())

    with ThreadPoolExecutor(1) as watcher:
        watch_task = watcher.submit(watch)
        try:
            yield times
        finally:
            stop.set()
        watch_task.result()


def num_requests(cluster: ControlPlane, namespace: Namespace, *, writes_only: bool = False) -> int:
    """The API server's requests from the namespace's operator, without its Lease.

    Watches are counted as one request each.
    """
    account = f"system:serviceaccount:{namespace.namespace}:agentworld-operator"
    events = map(json.loads, (cluster.folder / "audit.log").read_text().splitlines())
    return sum(
        item["objectRef"]["resource"] != "leases"
        and (item["verb"] in _WRITES or not writes_only)
        and item["stage"] == ("ResponseStarted" if item["verb"] == "watch" else "ResponseComplete")
        for item in events
        if item["user"]["username"] == account and "objectRef" in item
    )
