"""Simulators by the hundred before a real API server, and when an operator had dealt with each."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from control_plane import ControlPlane
from make_operator import Namespace
from make_simulator import simulator

_WRITES = ("create", "update", "patch", "delete")
_WRITERS = 8


class Burst(NamedTuple):
    """Simulators that were created, and what it took until all were dealt with."""

    number: int
    seconds: float
    """From the first creation."""
    waits: list[float]
    """Of each one, from its creation."""
    requests: int
    """Of the operator to the API server, reads and watches too."""


class Dealt:
    """Watches a namespace, and remembers when each Simulator's status was first told."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._times: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def time_of(self, name: str) -> float | None:
        return self._times.get(name)

    def all(self, names: list[str]) -> bool:
        return all(name in self._times for name in names)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        for found in self._namespace.watch("Simulator", self._stop):
            if (found.get("status") or {}).get("digest"):
                self._times.setdefault(found["metadata"]["name"], time.perf_counter())


@contextmanager
def dealt(namespace: Namespace) -> Iterator[Dealt]:
    watching = Dealt(namespace)
    try:
        yield watching
    finally:
        watching.close()


def burst(
    cluster: ControlPlane, namespace: Namespace, number: int, *, a_second: float | None = None
) -> Burst:
    """So many, as fast as the server takes them or at a rate."""
    names = [f"world-{number}-{each:04d}" for each in range(number)]
    made: dict[str, float] = {}

    def create(name: str) -> None:
        namespace.create(simulator(name))
        made[name] = time.perf_counter()

    with dealt(namespace) as seen:
        before = num_requests(cluster, namespace)
        began = time.perf_counter()
        with ThreadPoolExecutor(_WRITERS) as writers:
            for place, name in enumerate(names):
                if a_second:
                    time.sleep(max(0.0, began + place / a_second - time.perf_counter()))
                writers.submit(create, name)
        _until(lambda: seen.all(names), 300)
        requests = num_requests(cluster, namespace) - before
        ends = [seen.time_of(name) or 0.0 for name in names]
    waits = [max(0.0, end - made[name]) for name, end in zip(names, ends, strict=True)]
    return Burst(number, max(ends) - began, waits, requests)


def num_requests(cluster: ControlPlane, namespace: Namespace, *, writes_only: bool = False) -> int:
    """That the API server has answered to the namespace's operator, but for its Lease.

    Watches are counted as one request each.
    """
    account = f"system:serviceaccount:{namespace.namespace}:agentworld-operator"
    asked = map(json.loads, (cluster.folder / "audit.log").read_text().splitlines())
    return sum(
        said["objectRef"]["resource"] != "leases"
        and (said["verb"] in _WRITES or not writes_only)
        and said["stage"] == ("ResponseStarted" if said["verb"] == "watch" else "ResponseComplete")
        for said in asked
        if said["user"]["username"] == account and "objectRef" in said
    )


def _until(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not all were dealt with in {seconds} s"
        time.sleep(0.02)
