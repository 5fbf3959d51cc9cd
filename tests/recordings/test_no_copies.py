"""This project contains no part of a recording: no 60 bytes of one in a row."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentworld.storage.source import files_of

_RUN = 60
_BLOCK = _RUN // 2  # each run of 60 bytes holds a whole block of 30 at a multiple of 30
_FEW = 8
"""Runs of so few different bytes, such as a line of dashes, are not a copied text."""
_ROOT = Path(__file__).parents[2]


def blocks_of(folder: str) -> dict[bytes, list[tuple[bytes, int]]]:
    blocks: dict[bytes, list[tuple[bytes, int]]] = {}
    for file in files_of(folder):
        with file.open() as stream:
            data = stream.read()
        for start in range(0, len(data) - _BLOCK, _BLOCK):
            block = data[start : start + _BLOCK]
            if len(set(block)) > _FEW:
                blocks.setdefault(block, []).append((data, start))
    return blocks


def copies(data: bytes, blocks: dict[bytes, list[tuple[bytes, int]]]) -> Iterator[bytes]:
    for start in range(len(data) - _BLOCK):
        for recording, position in blocks.get(data[start : start + _BLOCK], ()):
            before = common(data[:start][::-1][:_RUN], recording[:position][::-1][:_RUN])
            after = common(data[start : start + _RUN], recording[position : position + _RUN])
            if before + after >= _RUN:
                yield data[start - before : start + after]


def common(a: bytes, b: bytes) -> int:
    pairs = enumerate(zip(a, b, strict=False))
    return next((number for number, (x, y) in pairs if x != y), min(len(a), len(b)))


def test_a_copied_run_of_60_bytes_is_found():
    recording = bytes(range(200)) * 2
    blocks = {recording[30:60]: [(recording, 30)]}
    assert list(copies(b"x" + recording[10:70] + b"y", blocks)) == [recording[10:70]]
    assert not list(copies(b"x" + recording[11:70] + b"y", blocks))


@pytest.fixture(scope="session")
def blocks():
    return blocks_of(os.environ["RECORDINGS"])


def test_no_file_of_this_project_contains_60_bytes_of_a_recording(blocks):
    result = subprocess.run(["git", "ls-files", "-z"], cwd=_ROOT, check=True, capture_output=True)
    paths = [_ROOT / name for name in result.stdout.decode().split("\0") if name]
    assert len(paths) > 100
    copies_by_path = {
        str(path.relative_to(_ROOT)): copy[:_RUN]
        for path in paths
        if path.is_file()
        for copy in copies(path.read_bytes(), blocks)
    }
    assert not copies_by_path
