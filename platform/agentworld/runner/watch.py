"""Watches a running step: its memory, and whether its driver still runs."""

import os
import signal
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from agentworld.runner.lock import holder_of

_SECONDS_BETWEEN_LOOKS = 1.0
_GIB = 1 << 30


def tree_memory_gib(root: psutil.Process | None = None) -> float:
    """Resident memory of a process and its descendants; shared pages count for each of them."""
    root = root or psutil.Process()
    return (
        sum(_resident_bytes(process) for process in (root, *root.children(recursive=True))) / _GIB
    )


class Watch:
    """Samples the memory of this process's tree, and ends the tree when its driver has ended.

    A driver (the demo) holds the store's lock. If it is killed, another driver may take the lock
    and run the same step in the same folder, so this one must stop.
    """

    def __init__(self, driver_lock: Path) -> None:
        self.peak_memory_gib = tree_memory_gib()
        self._driver_lock = driver_lock
        self._driver = holder_of(driver_lock)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._check_folder, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _check_folder(self) -> None:
        while not self._stopped.wait(_SECONDS_BETWEEN_LOOKS):
            self.peak_memory_gib = max(self.peak_memory_gib, tree_memory_gib())
            if self._driver and holder_of(self._driver_lock) != self._driver:
                _end_tree()


def _resident_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:  # it ended meanwhile
        return 0


def _end_tree() -> None:
    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.Error:
            continue
    os.kill(os.getpid(), signal.SIGKILL)
