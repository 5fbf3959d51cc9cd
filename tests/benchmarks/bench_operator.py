"""The operator with a real API server, against its targets: `make bench-operator`.

`.bench/operator.json`. There are nodes only for a cold start, so that only the operator is
measured. `python -m benchmarks.bench_operator burst` measures one part: idle, failover, rate,
burst, cold or fetch.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

import make.operator
from agentworld.cluster.api_resources import API_RESOURCES
from agentworld.cluster.names import engine_name
from benchmarks.cold_start import cold_starts
from benchmarks.fetch_model import fetches
from benchmarks.figures import percentile
from benchmarks.operator_load import burst, num_requests
from benchmarks.report import empty_folder, measured_on, publish
from machines.control_plane import ControlPlane, running
from make.operator import OLDER_BUDGETS, Namespace, Operator, Service
from make.simulator import pinned_manifest, simulator
from waiting import wait_for

_COLD, _FETCH = "cold", "fetch"
_OURS, _PLAIN = "machines.older_operator", "benchmarks.plain_kopf"
_SIZES = (100, 300, 1_000)
_RATE, _NUM_RATED = 20.0, 300
_IDLE_SECONDS = 60.0
_SETTLE_SECONDS = 30.0
"""The time in which Kubernetes' own controllers create the parts of Deployments."""
_MIB = 2**20

Figures = dict[str, object]


def main(*parts: str) -> int:
    """Exit status 1 if a required target is missed."""
    API_RESOURCES["PodDisruptionBudget"] = OLDER_BUDGETS
    machine_fields = measured_on()
    figures: Figures = {}
    folder = empty_folder("operator")
    selected = parts or (*_PARTS, _COLD, _FETCH)
    with running(folder) as cluster:
        make.operator.define(cluster)
        for name in selected:
            if name in _PARTS:
                figures |= _PARTS[name](cluster, folder)
    if _COLD in selected:  # on nodes, and separately
        figures |= cold_starts(folder / _COLD)
    if _FETCH in selected:
        figures |= fetches(folder / _FETCH)
    print(json.dumps(figures, indent=2))
    return publish("operator", {**machine_fields, **figures}, parts=parts)


def rate(cluster: ControlPlane, folder: Path) -> Figures:
    """Twenty creations a second, alternating with the yardstick's."""
    figures: Figures = {}
    for name, module in (("", _OURS), ("plain_kopf_", _PLAIN)):
        with operator(cluster, folder, module) as (namespace, _):
            waits = sorted(burst(cluster, namespace, _NUM_RATED, a_second=_RATE).waits)
        figures[f"{name}reconcile_p50_seconds"] = round(percentile(waits, 0.5), 3)
        figures[f"{name}reconcile_p99_seconds"] = round(percentile(waits, 0.99), 3)
    return figures


def bursts(cluster: ControlPlane, folder: Path) -> Figures:
    """All at once, each size in a separate namespace."""
    converge: dict[str, float] = {}
    plain: dict[str, float] = {}
    requests: dict[str, float] = {}
    memory = 0.0
    for size in _SIZES:
        for times, module in ((converge, _OURS), (plain, _PLAIN)):
            with operator(cluster, folder, module) as (namespace, running_operator):
                result = burst(cluster, namespace, size)
                times[str(size)] = round(result.seconds, 2)
                if module == _OURS:
                    requests[str(size)] = round(result.requests / size, 2)
                    memory = psutil.Process(running_operator.process.pid).memory_info().rss / _MIB
    return {
        "converge_seconds": converge,
        "plain_kopf_converge_seconds": plain,
        "requests_per_object": requests[str(_SIZES[-1])],
        "requests_per_object_by_size": requests,
        "memory_mib": round(memory, 1),
    }


def idle(cluster: ControlPlane, folder: Path) -> Figures:
    """Writes while nothing changes, without leases."""
    with operator(cluster, folder, _OURS) as (namespace, _):
        burst(cluster, namespace, 100)
        time.sleep(_SETTLE_SECONDS)
        before = num_requests(cluster, namespace, writes_only=True)
        time.sleep(_IDLE_SECONDS)
        writes = num_requests(cluster, namespace, writes_only=True) - before
    return {"idle_writes_per_minute": writes * 60 / _IDLE_SECONDS}


def failover(cluster: ControlPlane, folder: Path) -> Figures:
    """From the leader's death to the next leader's first write."""
    engine = engine_name(pinned_manifest("one").digest)
    with (
        operator(cluster, folder, _OURS) as (namespace, first),
        run_operator(cluster, namespace, folder, _OURS, "second"),
    ):
        namespace.create(simulator())
        wait_for(lambda: namespace.get("Deployment", engine))
        time.sleep(5)
        first.kill()
        start = time.perf_counter()
        namespace.change("one", replicas=2)

        def is_done() -> bool:
            deployment = namespace.get("Deployment", engine)
            return bool(deployment and deployment["spec"]["replicas"] == 2)

        wait_for(is_done, 120)
        seconds = time.perf_counter() - start
    return {"failover_seconds": round(seconds, 2)}


@contextmanager
def operator(
    cluster: ControlPlane, folder: Path, module: str
) -> Iterator[tuple[Namespace, Operator]]:
    """A leading operator, in a separate namespace."""
    namespace = make.operator.new_namespace(cluster, plain=module == _PLAIN)
    with run_operator(cluster, namespace, folder, module, "first") as replica:
        wait_for(replica.leads, 60)
        time.sleep(2)
        yield namespace, replica


@contextmanager
def run_operator(
    cluster: ControlPlane, namespace: Namespace, folder: Path, module: str, name: str
) -> Iterator[Operator]:
    service = Service()
    settings = make.operator.settings(cluster, namespace, service) | {"identity": name}
    replica = start_operator(folder / f"{namespace.namespace}-{name}.log", settings, module)
    try:
        yield replica
    finally:
        replica.kill()
        service.close()


def start_operator(log: Path, settings: Mapping[str, object], module: str) -> Operator:
    """An operator with the start-up time and the memory of a real one, so no fork."""
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    with log.open("ab") as log_file:
        process = subprocess.Popen(
            [sys.executable, "-m", module],
            env={**os.environ, **make.operator.variables(settings), **path},
            stdout=log_file,
            stderr=log_file,
        )
    return Operator(log, process)


_PARTS: dict[str, Callable[[ControlPlane, Path], Figures]] = {
    "idle": idle,  # before thousands of Deployments exist, whose controllers write
    "failover": failover,
    "rate": rate,
    "burst": bursts,
}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
