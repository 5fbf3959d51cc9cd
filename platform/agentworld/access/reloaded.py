"""Reloads the access file when it changes: a removed key stops working within a second."""

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from agentworld.access.base import Caller
from agentworld.access.directory import Directory
from agentworld.errors import InputError

_LOOK_SECONDS = 1.0

_log = logging.getLogger(__name__)


class AccessIndex(NamedTuple):
    """The callers and limits of the access file, indexed."""

    directory: Directory
    by_key: Mapping[str, Caller]
    by_account: Mapping[str, Caller]

    @classmethod
    def of(cls, directory: Directory) -> "AccessIndex":
        """Builds the index of a directory."""
        return cls(directory, directory.callers_by_key(), directory.callers_by_account())


class ReloadedAccess:
    """Reloads the file when it changed.

    If the new file is invalid, the last valid one stays in use and the error is logged. Raises
    InputError if the file is invalid at start.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._stamp = _stamp(path)
        self._index = AccessIndex.of(Directory.load(path))
        self._checked_at = clock()

    @property
    def index(self) -> AccessIndex:
        """The index of the current file."""
        if self._clock() - self._checked_at >= _LOOK_SECONDS:
            self._checked_at = self._clock()
            self._reload_if_changed()
        return self._index

    def _reload_if_changed(self) -> None:
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._index = AccessIndex.of(Directory.load(self._path))
        except InputError as error:
            _log.error("%s; the last valid version stays in use", error)


def _stamp(path: Path) -> tuple[int, ...]:
    """Changes whenever the file does; a mounted Secret is a symbolic link to a changing folder."""
    try:
        metadata = path.stat()
    except OSError:
        return ()
    return metadata.st_ino, metadata.st_mtime_ns, metadata.st_size
