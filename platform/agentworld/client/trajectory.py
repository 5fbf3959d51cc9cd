"""The agent's own log: append-only JSON lines, in files that belong to this process.

`write` returns after the operating system has the line, so a killed process loses none. A power
failure can lose the last `sync_seconds`. A file is never reopened for writing. A truncated line can
only be the last one; it has no newline.
"""

import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from agentworld.errors import InputError, StoreError
from agentworld.records.file import input_errors, read_lines, sync
from agentworld.records.trajectory_log import TornLine, TrajectoryLine, read_line, write_line


class TrajectoryLog:
    """Files `<when>-<who>-<number>.jsonl` in a folder that processes may share.

    Safe for several threads. `close` makes all lines durable.
    """

    def __init__(
        self, folder: Path, *, max_bytes: int = 64 << 20, sync_seconds: float = 1.0
    ) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._sync_seconds = sync_seconds
        self._name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:12]}"
        self._num_files = 0
        self._file: FileIO | None = None
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._failure: OSError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def write(self, *lines: TrajectoryLine) -> None:
        """Appends lines; raises StoreError if the disk refuses them or refused earlier ones."""
        data = b"".join(map(write_line, lines))
        with self._lock, self._translate_errors():
            self._check()
            file = self._room_for(len(data))
            try:
                _write_all(file, data)
            except OSError:
                with suppress(OSError):
                    self._leave()
                raise
            self._sync_soon()

    def close(self) -> None:
        """Makes all lines durable; a later `write` opens another file."""
        with self._lock, self._translate_errors():
            if self._timer:
                self._timer.cancel()
                self._timer = None
            self._leave()
            self._check()

    def _room_for(self, num_bytes: int) -> FileIO:
        if self._file and self._file.tell() + num_bytes > self._max_bytes:
            self._leave()
        if self._file is None:
            self._file = self._begin()
        return self._file

    def _begin(self) -> FileIO:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._num_files += 1
        path = self._folder / f"{self._name}-{self._num_files:04d}.jsonl"
        file = path.open("xb", buffering=0)
        # without this a power failure can remove the file's name
        sync(self._folder)
        sync(self._folder.parent)
        return file

    def _leave(self) -> None:
        file, self._file = self._file, None
        if file:
            with file:
                os.fsync(file.fileno())

    def _sync_soon(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(self._sync_seconds, self._sync)
            self._timer.daemon = True
            self._timer.start()

    def _sync(self) -> None:
        """Runs in its own thread, so that writers do not wait for the disk."""
        with self._lock:
            self._timer = None
            # another file may have been opened meanwhile
            handle = os.dup(self._file.fileno()) if self._file else None
        if handle is None:
            return
        try:
            os.fsync(handle)
        except OSError as error:
            self._failure = error
        finally:
            os.close(handle)

    def _check(self) -> None:
        """Raises the other thread's failure in this one; lines of its file may be missing."""
        failure, self._failure = self._failure, None
        if failure:
            with suppress(OSError):
                self._leave()
            raise failure

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"the trajectory in {self._folder} cannot be written: {error.strerror}; free space,"
                " or name another folder"
            ) from error


def read_trajectory(path: Path) -> Iterator[TrajectoryLine | TornLine]:
    """The lines of a file, or of all files of a folder; raises InputError naming file and line."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path} holds no trajectory (*.jsonl); name the folder of a log")
    for file in files:
        yield from _read_file(file)


def _read_file(path: Path) -> Iterator[TrajectoryLine | TornLine]:
    with input_errors(path):
        for number, line in enumerate(read_lines(path), start=1):
            yield _parse(line, path, number)


def _parse(line: bytes, path: Path, number: int) -> TrajectoryLine | TornLine:
    if not line.endswith(b"\n"):
        return TornLine(path.name, len(line))
    try:
        return read_line(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} line {number} is not a line of a trajectory: {error}") from error


def _write_all(file: FileIO, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[file.write(remaining) :]
