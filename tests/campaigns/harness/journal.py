"""A party's journal: each event is a line of JSON, written before the party continues.

A line is one system call: a killed process leaves complete lines, and at most one incomplete one.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Journal:
    """An append-only file. Several processes may write to it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        if os.fstat(self._file).st_size:
            os.write(self._file, b"\n")  # an earlier writer may have been killed within a line

    def write(self, **fields: object) -> None:
        """Returns when the kernel has the line."""
        line = json.dumps({"at": round(time.time(), 3), **fields}, separators=(",", ":"))
        os.write(self._file, line.encode() + b"\n")


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The complete lines of a journal; an incomplete one is ignored."""
    for line in path.read_bytes().splitlines() if path.exists() else []:
        try:
            yield json.loads(line)
        except ValueError:
            continue
