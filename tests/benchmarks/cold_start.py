"""From the creation of a Simulator to its first response, by phase, on the tests' own nodes.

The model has a GiB of weights in files of a quarter each, as big ones have them in files of 5 GB.
"""

import re
import tempfile
import time
from datetime import datetime
from pathlib import Path

from kubernetes.client import V1Pod

import make.model
from agentworld.cluster.names import engine_name
from benchmarks.figures import percentile
from machines.nodes import running
from make.release import NAMESPACE, Release, claimed_weights, installed, manifest, simulator
from waiting import wait_for

_STARTS = 3
_SECONDS = 300.0
_NUM_LAYERS, _HIDDEN_SIZE, _SHARD = 28, 1024, "256MB"
_CHECKED = re.compile(r"checked in ([\d.]+) s")
_LOADED = re.compile(r"Loading weights took ([\d.]+) seconds")
_COMPILED = re.compile(r"init engine \(.*?\) took ([\d.]+) s")

Phases = dict[str, float]


def cold_starts(folder: Path) -> dict[str, object]:
    """The median of each phase, in seconds."""
    with tempfile.TemporaryDirectory() as folder_name, running(folder) as cluster:
        model = make.model.tiny_model(
            Path(folder_name),
            num_layers=_NUM_LAYERS,
            hidden_size=_HIDDEN_SIZE,
            max_shard_size=_SHARD,
        )
        num_bytes = sum(file.stat().st_size for file in model.iterdir())
        with installed(cluster, folder) as release:
            claimed_weights(release, model)
            wait_for(release.is_up, _SECONDS)
            starts = [_cold_start(release, model, f"cold-{number}") for number in range(_STARTS)]
    phases = {
        name: round(percentile(sorted(start[name] for start in starts), 0.5), 2)
        for name in starts[0]
    }
    return {
        "cold_start_mib": round(num_bytes / 2**20),
        "cold_start_seconds": phases,
        "verify_of_load": round(phases["verify"] / phases["engine"], 4),
        "verify_of_weights_load": round(phases["verify"] / phases["load"], 4),
    }


def _cold_start(release: Release, model: Path, name: str) -> Phases:
    simulator_manifest = manifest(model, name)
    start = time.time()
    release.create(simulator(name, simulator_manifest))
    wait_for(
        lambda: release.namespace.conditions(name).get("Ready") == ("True", "Serving"), _SECONDS
    )
    end = time.time()
    selector = (
        f"agentworld.dev/simulator={engine_name(simulator_manifest.digest).removeprefix('engine-')}"
    )
    [pod] = release.core.list_namespaced_pod(NAMESPACE, label_selector=selector).items
    phases = _phases(release, pod, start, end)
    release.namespace.delete("Simulator", name)
    wait_for(
        lambda: not release.core.list_namespaced_pod(NAMESPACE, label_selector=selector).items,
        _SECONDS,
    )
    return phases


def _phases(release: Release, pod: V1Pod, start: float, end: float) -> Phases:
    """`verify` and the parts of `engine` are the programs' own times; the rest is in whole seconds,
    from Kubernetes.
    """
    [verifier], [engine] = pod.status.init_container_statuses, pod.status.container_statuses
    verifier_state, engine_start = verifier.state.terminated, engine.state.running.started_at
    log_text = _log(release, pod, "engine")
    load_seconds, compile_seconds = _found(_LOADED, log_text), _found(_COMPILED, log_text)
    seconds = end - engine_start.timestamp()
    return {
        "pod": max(0.0, verifier_state.started_at.timestamp() - start),
        "verifier": _seconds(verifier_state.started_at, verifier_state.finished_at),
        "verify": _found(_CHECKED, _log(release, pod, "verify")),
        "engine": seconds,
        "load": load_seconds,
        "compile": compile_seconds,
        "ready": seconds - load_seconds - compile_seconds,
        "all": end - start,
    }


def _seconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds()


def _log(release: Release, pod: V1Pod, container: str) -> str:
    name = pod.metadata.name
    return str(release.core.read_namespaced_pod_log(name, NAMESPACE, container=container))


def _found(pattern: re.Pattern[str], text: str) -> float:
    match = pattern.search(text)
    assert match, f"the log does not tell of {pattern.pattern!r}: {text[-2000:]}"
    return float(match[1])
