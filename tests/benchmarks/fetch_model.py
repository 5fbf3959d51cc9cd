"""A model from where it is kept to where an engine reads it: with hashes and without, in turns.

The source is a folder on this machine's disk, which the page cache holds: no network is faster, so
that a hash is a larger part of the time here than from an object store.
"""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Self
from unittest.mock import patch

from agentworld.records.checkpoint import ArtifactManifest
from agentworld.storage import fetch
from agentworld.storage.fetch import fetch_files
from agentworld.storage.shared_model import share_model

_NUM_FILES = 8
_FILE_BYTES = 512 << 20
_PIECE_BYTES = 64 << 20
_ROUNDS = 3
_LARGE_BYTES = 70e9
"""A model of 35 billion parameters in bfloat16."""


class _NoHash:
    """In the place of SHA-256."""

    def update(self, _piece: bytes) -> None:
        pass

    def hexdigest(self) -> str:
        return "none"

    @classmethod
    def sha256(cls) -> Self:
        return cls()


def fetches(folder: Path) -> dict[str, object]:
    """Medians in seconds, and what 70 GB would take at the same rate."""
    source = folder / "source"
    source.mkdir(parents=True)
    for number in range(_NUM_FILES):
        _write(source / f"model-{number}.safetensors")
    artifact = ArtifactManifest.of(source)
    url = f"file://{source}"
    files = dict.fromkeys(artifact.files, "sha256:none")
    hashed: list[float] = []
    plain: list[float] = []
    for _ in range(_ROUNDS):
        hashed.append(_seconds(folder, lambda copy: fetch_files(url, artifact.files, copy)))
        with patch.object(fetch, "hashlib", _NoHash):
            plain.append(_seconds(folder, lambda copy: fetch_files(url, files, copy)))
    model = folder / "cache" / "model"
    first, second = (_timed(lambda: share_model(url, artifact, model)) for _ in range(2))
    shutil.rmtree(folder / "cache")
    shutil.rmtree(source)
    rate = _NUM_FILES * _FILE_BYTES / median(hashed)
    return {
        "fetch": {
            "mib": _NUM_FILES * _FILE_BYTES >> 20,
            "seconds": round(median(hashed), 2),
            "without_hash_seconds": round(median(plain), 2),
            "hash_share": round(1 - median(plain) / median(hashed), 4),
            "first_pod_seconds": round(first, 2),
            "second_pod_seconds": round(second, 4),
            "seconds_for_70_gb": round(_LARGE_BYTES / rate),
        }
    }


def _write(path: Path) -> None:
    with path.open("wb") as file:
        for _ in range(_FILE_BYTES // _PIECE_BYTES):
            file.write(os.urandom(_PIECE_BYTES))


def _seconds(folder: Path, work: Callable[[Path], None]) -> float:
    copy = folder / "copy"
    copy.mkdir()
    os.sync()  # what was written before is not this fetch's
    seconds = _timed(lambda: work(copy))
    shutil.rmtree(copy)
    return seconds


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
