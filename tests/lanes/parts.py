"""A pytest plugin: with `-n N --dist each --parts`, each worker collects a part of the files.

Collecting all tests takes seconds of a processor, and in xdist's other modes each worker does so.
"""

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import pytest

from lanes.unwanted import is_unwanted


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "with --dist each: every worker runs a part of the files of its own"
    parser.addoption("--parts", action="store_true", help=text)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Three for two cores: while one waits for a process or a lock, another computes."""
    return len(os.sched_getaffinity(0)) * 3 // 2 if config.getoption("parts") else None


def pytest_configure(config: pytest.Config) -> None:
    worker = getattr(config, "workerinput", None)
    if worker and config.getoption("parts"):
        number = int(worker["workerid"].removeprefix("gw"))
        config.pluginmanager.register(Part(config, number, worker["workercount"]), "lane-part")


class Part:
    """One worker's part of the files to collect."""

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
    total, before = sum(sizes.values()), 0
    for path in sorted(sizes):
        parts[before * num_parts // total].append(path)
        before += sizes[path]
    return parts
