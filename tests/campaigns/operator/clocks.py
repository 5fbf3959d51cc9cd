"""The clocks of one process: their offsets to the real ones, which a campaign changes."""

import mmap
import struct
from pathlib import Path
from typing import NamedTuple

_FORM = struct.Struct("dd")


class Ahead(NamedTuple):
    """Offsets in seconds."""

    monotonic: float
    wall: float


class Clocks:
    """A file that two processes share: one makes the clocks jump, the other one uses them."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_FORM.pack(0.0, 0.0))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _FORM.size)

    @property
    def ahead(self) -> Ahead:
        """The current offsets."""
        return Ahead(*_FORM.unpack_from(self._shared))

    def jump(self, *, monotonic: float = 0.0, wall: float = 0.0) -> None:
        """Adds to the offsets; a monotonic clock never goes back."""
        assert monotonic >= 0
        ahead = self.ahead
        _FORM.pack_into(self._shared, 0, ahead.monotonic + monotonic, ahead.wall + wall)
