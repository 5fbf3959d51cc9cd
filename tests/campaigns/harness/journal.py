"""What a party saw or said, a line of JSON each, written before it goes on.

A line is one call of the system's: who is killed leaves whole lines, and perhaps half of one.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Journal:
    """A file that grows. Several processes may write to one."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        if os.fstat(self._file).st_size:
            os.write(self._file, b"\n")  # whoever wrote before may have been killed in a line

    def write(self, **fields: object) -> None:
        """Returns when the line is out of this process's hands."""
        line = json.dumps({"at": round(time.time(), 3), **fields}, separators=(",", ":"))
        os.write(self._file, line.encode() + b"\n")


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a journal; half a line was never said."""
    for line in path.read_bytes().splitlines() if path.exists() else []:
        try:
            yield json.loads(line)
        except ValueError:
            continue
