"""Splits files of trajectories into batches of a few MiB for parallel reading."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from agentworld.errors import InputError
from agentworld.records.file import MOST_BYTES, input_errors, open_regular
from agentworld.records.trajectory import Trajectory
from agentworld.storage.trajectories import parse_trajectory

BYTES_PER_BATCH = 4 << 20
_PIECE_BYTES = 1 << 20


class Part(NamedTuple):
    """Complete lines of one file."""

    path: Path
    start: int
    """The offset of its first byte."""
    end: int
    """The offset after its last byte."""


Batch = tuple[Part, ...]


def batches_of(files: Sequence[Path], num_bytes: int = BYTES_PER_BATCH) -> list[Batch]:
    """All lines in their order: small files share a batch, large ones are cut between lines."""
    batches: list[Batch] = []
    parts: list[Part] = []
    for file in files:
        with input_errors(file):
            for next_part in _parts_of(file, num_bytes):
                parts.append(next_part)
                if sum(part.end - part.start for part in parts) >= num_bytes:
                    batches.append(tuple(parts))
                    parts = []
    return [*batches, tuple(parts)] if parts else batches


def read_batch(batch: Batch) -> Iterator[Trajectory]:
    """Yields the trajectories in order; raises InputError naming file, line and field."""
    for part in batch:
        with input_errors(part.path):
            yield from _read_part(part)


def _parts_of(file: Path, num_bytes: int) -> Iterator[Part]:
    with open_regular(file) as stream:
        size, start = stream.seek(0, 2), 0
        while start < size:
            stream.seek(min(start + num_bytes, size) - 1)
            while (rest := stream.readline(MOST_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield Part(file, start, stream.tell())
            start = stream.tell()


def _read_part(part: Part) -> Iterator[Trajectory]:
    with open_regular(part.path) as stream:
        position = stream.seek(part.start)
        while position < part.end and (line := stream.readline(MOST_BYTES + 1)):
            place = partial(_place, part.path, position)
            if len(line) > MOST_BYTES:
                raise InputError(f"{place()} has more than {MOST_BYTES} bytes; remove it")
            position += len(line)
            yield parse_trajectory(line, place)


def _place(path: Path, position: int) -> str:
    """Counts the line lazily."""
    number = 1
    with open_regular(path) as stream:
        while piece := stream.read(min(position, _PIECE_BYTES)):
            number += piece.count(b"\n")
            position -= len(piece)
    return f"{path} line {number}"
