"""A lock file that one living process holds; the kernel releases it however the process ends."""

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentworld.errors import StoreError

_SECONDS_BETWEEN_TRIES = 0.1
_NAME_BYTES = 16


@contextmanager
def hold(path: Path, busy: str, *, patience_seconds: float = 0.0) -> Iterator[None]:
    """Holds a lock file; raises StoreError with this sentence if another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    deadline = time.monotonic() + patience_seconds
    try:
        while not _take(descriptor):
            if time.monotonic() >= deadline:
                raise StoreError(busy)
            time.sleep(_SECONDS_BETWEEN_TRIES)
        os.pwrite(descriptor, secrets.token_bytes(_NAME_BYTES), 0)
        yield
    finally:
        os.close(descriptor)


def holder_of(path: Path) -> bytes | None:
    """An identifier of the current holder, new for each hold; null if the lock is free."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        return None if _take(descriptor) else os.pread(descriptor, _NAME_BYTES, 0)
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
