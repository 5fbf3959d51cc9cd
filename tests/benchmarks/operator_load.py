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
    """So many, as fast as the server takes them or at a rate."""
    names = [f"world-{number}-{each:04d}" for each in range(number)]
    created: dict[str, float] = {}

    def create(name: str) -> None:
        namespace.create(simulator(name))
        created[name] = time.perf_counter()

    with _reconciled(namespace) as reconciled:
        before = num_requests(cluster, namespace)
        began = time.perf_counter()
        with ThreadPoolExecutor(_WRITERS) as writers:
            for place, name in enumerate(names):
                if a_second:
                    time.sleep(max(0.0, began + place / a_second - time.perf_counter()))
                writers.submit(create, name)
        wait_for(lambda: reconciled.keys() >= {*names}, _LONGEST_SECONDS)
        requests = num_requests(cluster, namespace) - before
    waits = [max(0.0, reconciled[name] - created[name]) for name in names]
    ended = max(reconciled[name] for name in names)
    return Burst(number, ended - began, waits, requests)


@contextmanager
def _reconciled(namespace: Namespace) -> Iterator[dict[str, float]]:
    """The time at which the status of each Simulator first had a digest, from a watch."""
    times: dict[str, float] = {}
    stop = threading.Event()

    def watch() -> None:
        for found in namespace.watch("Simulator", stop):
            if (found.get("status") or {}).get("digest"):
                times.setdefault(found["metadata"]["name"], time.perf_counter())

    with ThreadPoolExecutor(1) as watcher:
        watching = watcher.submit(watch)
        try:
            yield times
        finally:
            stop.set()
        watching.result()


def num_requests(cluster: ControlPlane, namespace: Namespace, *, writes_only: bool = False) -> int:
    """The API server's requests from the namespace's operator, without its Lease.

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
