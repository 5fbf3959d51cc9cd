"""Trajectories as JSON lines: one file for each chunk of episodes, or for a log.

A folder that `collect` filled has the manifest of its chunks; for any other folder of JSON lines
one is computed here, so that external logs are imported in the same way.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from agentworld.errors import InputError
from agentworld.records.base import digest_file
from agentworld.records.collected import Collected
from agentworld.records.file import input_errors, read_lines, write_whole
from agentworld.records.trajectory import Trajectory

MANIFEST = "collected.json"
_MOST_PROBLEMS = 1_000
_MOST_OF_FIELD = 80
_EVALUATION_FIELDS = {
    "task", "id", "prompt", "response", "current_prompt", "system_str", "turn_idx", "total_turns",
}  # fmt: skip
"""The fields of a row of AgentWorldBench."""


def write_trajectories(path: Path, trajectories: Iterable[Trajectory]) -> None:
    """Writes one file atomically."""
    lines = [trajectory.model_dump_json() + "\n" for trajectory in trajectories]
    write_whole(path, "".join(lines).encode())


def read_trajectories(path: Path) -> Iterator[Trajectory]:
    """Yields the trajectories of a file, or of all files of a folder.

    Raises InputError naming file, line and field.
    """
    files = [path / name for name in read_collected(path).chunks] if path.is_dir() else [path]
    for file in files:
        yield from _read_file(file)


def read_collected(folder: Path) -> Collected:
    """The manifest of a folder of trajectories; raises InputError if a file differs from it."""
    if not (folder / MANIFEST).is_file():
        return _manifest_of(folder)
    manifest = Collected.read(folder / MANIFEST)
    for name, digest in manifest.chunks.items():
        if not (folder / name).is_file() or digest_file(folder / name) != digest:
            raise InputError(f"{folder / name} is not the file of {MANIFEST}; collect it again")
    return manifest


def domains_in(folder: Path) -> tuple[str, ...]:
    """The domains in a folder's manifest; empty without a manifest."""
    return Collected.read(folder / MANIFEST).domains if (folder / MANIFEST).is_file() else ()


def _manifest_of(folder: Path) -> Collected:
    names = sorted(path.name for path in folder.glob("*.jsonl"))
    if not names:
        raise InputError(f"{folder} has no trajectories (*.jsonl); run `agentworld data collect`")
    return Collected(chunks={name: digest_file(folder / name) for name in names})


def _read_file(path: Path) -> Iterator[Trajectory]:
    with input_errors(path):
        for number, line in enumerate(read_lines(path), start=1):
            yield parse_trajectory(line, partial(_place, path, number))


def _place(path: Path, number: int) -> str:
    return f"{path} line {number}"


def parse_trajectory(line: bytes, place: Callable[[], str]) -> Trajectory:
    """Parses a line of such a file; raises InputError naming its place and the field."""
    try:
        return Trajectory.model_validate_json(line)
    except ValidationError as error:
        location = place()
        if _is_evaluation_row(line):
            raise InputError(
                f"{location} is a row of AgentWorldBench, which is for evaluation only; remove"
                " its file, and name it in prepare.benchmarks"
            ) from error
        raise InputError(
            f"{location} is not a valid trajectory: {_problem_of(error)}; correct it"
        ) from error


def _problem_of(error: ValidationError) -> str:
    """The first invalid field and its problem, without its value, which may be a secret."""
    if error.error_count() > _MOST_PROBLEMS:  # formatting all of them would be slow
        return f"{error.error_count()} values are wrong"
    problem = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(map(str, problem["loc"]))[:_MOST_OF_FIELD] or "the whole"
    return f"{field}: {problem['msg']}"


def _is_evaluation_row(line: bytes) -> bool:
    with suppress(ValueError, RecursionError):
        row = json.loads(line)
        return isinstance(row, dict) and row.keys() >= _EVALUATION_FIELDS
    return False
