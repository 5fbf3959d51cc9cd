"""From logs to a data set against its targets: `make bench-data`.

Generated chats (SMALL=1: a tenth and less)
are imported and prepared, each time in a new process, and `datasets.map(num_proc=2)` does the same
to the same digests. Planted near-duplicates and leaks are counted.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.data_logs import write_logs
from benchmarks.data_recall import dedup_false, dedup_recall, leak_shares
from benchmarks.report import empty_folder, measured_on, publish
from make.secrets import hashes_redacted, secret_recall

_SIZES = (10_000, 100_000)
_MIB = 2**20
_EVERY_SECONDS = 0.1


class Completed(NamedTuple):
    """A process's output, and the peak memory of it and its children."""

    output: dict[str, Any]
    peak_pss_mib: float


def main() -> int:
    """Exit status 1 if a required target is missed."""
    sizes = [int(item) for item in sys.argv[1:]] or list(_SIZES)
    machine_fields = measured_on()
    folder = empty_folder("data")
    try:
        measured = measure(folder, sizes)
    finally:
        shutil.rmtree(folder)
    options = "SMALL=1" if sys.argv[1:] else ""
    return publish("data", {**machine_fields, **measured}, options=options)


def measure(folder: Path, sizes: list[int]) -> dict[str, Any]:
    """Every key of the JSON except those that describe the run."""
    runs = {size: at_size(folder, size) for size in sizes}
    small, large = (total_seconds(runs[size]) for size in (sizes[0], sizes[-1]))
    logs = logs_of(folder, sizes[-1])
    light, one_worker = run_ours(logs, folder, "light"), run_ours(logs, folder, "one")
    peers = {kind: run("data_peer", logs, folder, kind) for kind in ("light", "all")}
    results = {"light": light, "all": runs[sizes[-1]]}
    leak_recall, leak_false = leak_shares()
    return {
        "sizes": {str(size): figures_at(completed) for size, completed in runs.items()},
        "growth_100k_over_10k": round(large / small, 2),
        "peak_pss_mib": round(max(completed.peak_pss_mib for completed in runs.values())),
        **{
            f"ratio_map_{kind}": round(peer.output["seconds"] / total_seconds(results[kind]), 2)
            for kind, peer in peers.items()
        },
        "peer_seconds": {kind: peer.output["seconds"] for kind, peer in peers.items()},
        "light_seconds": round(total_seconds(light), 2),
        "digests_equal": one_worker.output["digest"] == results["all"].output["digest"]
        and all(peers[kind].output["pools"] == results[kind].output["pools"] for kind in peers),
        "dedup_recall": dedup_recall(),
        "dedup_false": dedup_false(),
        "leak_recall": leak_recall,
        "leak_false": leak_false,
        "secret_recall": secret_recall(),
        "hashes_redacted": hashes_redacted(),
        "guide_seconds": guide_seconds(),
    }


def guide_seconds() -> float:
    """Every command of the guide on 2,000 generated logs, and the tests of the results."""
    path = "tests/agentworld_cli/test_logs_to_simulator.py"
    start = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "not a_page", path],
        env={**os.environ, "NUM_LOGS": "2000"},
        check=True,
    )
    return round(time.monotonic() - start, 1)


def at_size(folder: Path, size: int) -> Completed:
    """All steps, from logs to pools."""
    write_logs(logs_of(folder, size), size)
    completed = run_ours(logs_of(folder, size), folder, "all")
    print(json.dumps({"trajectories": size, **figures_at(completed)}), file=sys.stderr)
    return completed


def logs_of(folder: Path, size: int) -> Path:
    """The generated recordings."""
    return folder / f"{size}.jsonl"


def run_ours(logs: Path, folder: Path, kind: str) -> Completed:
    """Import and prepare, with one of the recipes of `data_ours`."""
    return run("data_ours", logs, folder, kind)


def run(module: str, logs: Path, folder: Path, kind: str) -> Completed:
    """A new process, whose files are removed."""
    work = folder / module
    work.mkdir()
    environment = {"HF_DATASETS_CACHE": str(work / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", f"benchmarks.{module}", str(logs), str(work), kind]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    end_event, peaks = threading.Event(), [0.0]
    watch = threading.Thread(target=watch_memory, args=(process.pid, end_event, peaks))
    watch.start()
    output, _ = process.communicate()
    end_event.set()
    watch.join()
    shutil.rmtree(work)
    assert process.returncode == 0, command
    return Completed(json.loads(output.splitlines()[-1]), max(peaks))


def watch_memory(pid: int, end_event: threading.Event, peaks: list[float]) -> None:
    """Records the memory of a process and its children, with shared pages divided."""
    while not end_event.wait(_EVERY_SECONDS):
        try:
            root = psutil.Process(pid)
            tree = [root, *root.children(recursive=True)]
            peaks.append(sum(item.memory_full_info().pss for item in tree) / _MIB)
        except psutil.Error:
            continue  # a process has ended


def total_seconds(completed: Completed) -> float:
    """The seconds of import and prepare."""
    seconds: float = completed.output["import_seconds"] + completed.output["prepare_seconds"]
    return seconds


def figures_at(completed: Completed) -> dict[str, float]:
    """The JSON's figures for a size."""
    names = ("import_seconds", "prepare_seconds")
    seconds = {name: completed.output[name] for name in names}
    return {**seconds, "peak_pss_mib": round(completed.peak_pss_mib)}


if __name__ == "__main__":
    sys.exit(main())
