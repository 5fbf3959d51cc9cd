"""A pytest plugin: with `--part=0/3`, a process collects and runs a part of the files.

Fast tests run in several such processes: one that collects all tests takes seconds of a processor.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import pytest

from lanes.unwanted import is_unwanted


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", help="the part of the files to run, and the number of parts: 0/3")


def pytest_configure(config: pytest.Config) -> None:
    if part := config.getoption("part"):
        config.pluginmanager.register(Part(config, *map(int, part.split("/"))), "lane-part")


class Part:
    """The files that one process collects."""

    def __init__(self, config: pytest.Config, number: int, num_parts: int) -> None:
        self._config = config
        self._number = number
        self._num_parts = num_parts

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Skips the files of other parts, and the `conftest.py` of their folders."""
        if collection_path.is_dir() or collection_path.match("test_*.py"):
            return None if collection_path in self._paths else True
        return None

    @cached_property
    def _paths(self) -> set[Path]:
        """The files, and all folders above them."""
        base = self._config.invocation_params.dir
        roots = [base / argument.partition("::")[0] for argument in self._config.args]
        paths = {path for root in roots for path in [root, *root.rglob("test_*.py")]}
        sizes = {
            path: path.stat().st_size
            for path in paths
            if path.is_file() and not is_unwanted(path, self._config)
        }
        files = split(sizes, self._num_parts)[self._number]
        return {path for file in files for path in (file, *file.parents)}


def split(sizes: Mapping[Path, int], num_parts: int) -> list[list[Path]]:
    """Splits into parts of similar size, with adjacent files, because these import similar
    modules.
    """
    parts: list[list[Path]] = [[] for _ in range(num_parts)]
    total, size_before = sum(sizes.values()), 0
    for path in sorted(sizes):
        parts[size_before * num_parts // total].append(path)
        size_before += sizes[path]
    return parts
