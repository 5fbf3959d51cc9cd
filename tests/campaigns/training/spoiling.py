"""Damages the newest checkpoint of a store, as a disk or a person might."""

import random
from collections.abc import Callable
from pathlib import Path


def _truncate(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(len(data))] if data else b"more")


def _alter(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes() or b"\0")
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


SPOILING: dict[str, Callable[[Path, random.Random], None]] = {
    "truncated": _truncate,
    "altered": _alter,
}


def spoil(store: Path, kind: str, chance: random.Random) -> str | None:
    """The damaged file; null without a finished checkpoint."""
    manifests = store.glob("steps/*/*/**/checkpoint-*/manifest.json")
    newest = max(manifests, key=lambda manifest: manifest.stat().st_mtime, default=None)
    if newest is None:
        return None
    files = sorted(path for path in newest.parent.rglob("*") if path.is_file())
    path = chance.choice(files)
    SPOILING[kind](path, chance)
    return str(path.relative_to(store))
