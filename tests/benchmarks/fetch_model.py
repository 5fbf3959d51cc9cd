"""Fetches a model from its store to an engine's folder: with and without hashes, alternately.

The source is a folder on this machine's disk, in the page cache: first at full speed, and then at
the speed of a network of 10 Gbit/s, where hashing can overlap with the transfer.
"""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Self

from agentworld.records.checkpoint import ArtifactManifest
from agentworld.storage import fetch
from agentworld.storage.fetch import Source, fetch_files
from agentworld.storage.shared_model import share_model

_NUM_FILES = 8
_FILE_BYTES = 512 << 20
_PIECE_BYTES = 64 << 20
_ROUNDS = 3
_NETWORK = 1.25e9
"""Bytes per second."""
_LARGE_BYTES = 70e9
"""A model of 35 billion parameters in bfloat16."""

_read = Source.read


class _NoHash:
    """Replaces SHA-256."""

    def update(self, _piece: bytes) -> None:
        pass

    def hexdigest(self) -> str:
        return "none"

    @classmethod
    def sha256(cls) -> Self:
        return cls()


def _read_at_rate() -> Callable[[Source, str, int, int], bytes]:
    """Replaces `Source.read`: limits the rate of all readers together to the network's."""
    lock = threading.Lock()
    is_free_at = 0.0

    def read(source: Source, name: str, begin: int, end: int) -> bytes:
        nonlocal is_free_at
        with lock:
            is_free_at = max(time.perf_counter(), is_free_at) + (end - begin) / _NETWORK
            arrival = is_free_at
        piece = _read(source, name, begin, end)
        time.sleep(max(0.0, arrival - time.perf_counter()))
        return piece

    return read


def fetches(folder: Path) -> dict[str, object]:
    """Medians in seconds, and the time for 70 GB at the same rate."""
    source = folder / "source"
    source.mkdir(parents=True)
    for number in range(_NUM_FILES):
        _write(source / f"model-{number}.safetensors")
    artifact = ArtifactManifest.of(source)
    url = f"file://{source}"
    disk = _in_turns(folder, url, artifact)
    with _instead(Source, "read", _read_at_rate()):
        network = _in_turns(folder, url, artifact)
    model = folder / "cache" / "model"
    first, second = (_timed(lambda: share_model(url, artifact, model)) for _ in range(2))
    shutil.rmtree(folder / "cache")
    shutil.rmtree(source)
    num_bytes = _NUM_FILES * _FILE_BYTES
    return {
        "fetch": {
            "mib": num_bytes >> 20,
            "disk": disk,
            "network": network,
            "first_pod_seconds": round(first, 2),
            "second_pod_seconds": round(second, 4),
            "network_seconds_for_70_gb": round(_LARGE_BYTES / num_bytes * network["seconds"]),
        }
    }


def _in_turns(folder: Path, url: str, artifact: ArtifactManifest) -> dict[str, float]:
    without_digests = dict.fromkeys(artifact.files, "sha256:none")
    hashed_seconds: list[float] = []
    plain_seconds: list[float] = []
    for _ in range(_ROUNDS):
        hashed_seconds.append(_seconds(folder, lambda copy: fetch_files(url, artifact.files, copy)))
        with _instead(fetch, "hashlib", _NoHash):
            plain_seconds.append(
                _seconds(folder, lambda copy: fetch_files(url, without_digests, copy))
            )
    return {
        "seconds": round(median(hashed_seconds), 2),
        "without_hash_seconds": round(median(plain_seconds), 2),
        "hash_share": round(1 - median(plain_seconds) / median(hashed_seconds), 4),
    }


@contextmanager
def _instead(owner: object, name: str, replacement: object) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _write(path: Path) -> None:
    with path.open("wb") as file:
        for _ in range(_FILE_BYTES // _PIECE_BYTES):
            file.write(os.urandom(_PIECE_BYTES))


def _seconds(folder: Path, work: Callable[[Path], None]) -> float:
    copy = folder / "copy"
    copy.mkdir()
    os.sync()  # earlier writes do not belong to this fetch
    seconds = _timed(lambda: work(copy))
    shutil.rmtree(copy)
    return seconds


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
