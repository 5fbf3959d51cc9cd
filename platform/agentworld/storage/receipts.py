"""The receipts of finished steps in a store, searched by their outputs or inputs."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from agentworld.errors import EvidenceError, InputError
from agentworld.records.base import Digest
from agentworld.records.garbled import reading
from agentworld.records.step import StepReceipt

RECEIPT = "receipt.json"


class FinishedStep(NamedTuple):
    """A folder and the receipt in it."""

    folder: Path
    receipt: StepReceipt


def read_receipt(folder: Path) -> StepReceipt:
    """The receipt of a finished step; raises InputError if there is none."""
    if not (folder / RECEIPT).exists():
        raise InputError(
            f"{folder} is not a finished step ({RECEIPT} is missing); run that step first"
        )
    return StepReceipt.read(folder / RECEIPT)


def step_that_made(store: Path, step: str, output: Digest) -> FinishedStep | None:
    """The newest finished step of a kind with this output."""
    return newest(_load_receipts(store / "steps" / step).with_output(output))


def step_that_read(
    store: Path, step: str, at: datetime | None = None, **inputs: Digest
) -> FinishedStep | None:
    """The newest step of a kind that had finished by `at` and has these inputs among its own.

    Null is now.
    """
    steps = _load_receipts(store / "steps" / step).with_input(next(iter(inputs.items())))
    pairs = inputs.items()
    matches = (step for step in steps if pairs <= step.receipt.inputs.items())
    return newest(step for step in matches if at is None or finished_at(step) <= at)


def finished_steps(store: Path, step: str) -> Iterator[FinishedStep]:
    """All finished steps of a kind."""
    return iter(_load_receipts(store / "steps" / step).all())


def newest(steps: Iterable[FinishedStep]) -> FinishedStep | None:
    """The step that finished last."""
    return max(steps, key=finished_at, default=None)


def finished_at(step: FinishedStep) -> datetime:
    """The time of its receipt."""
    return datetime.fromtimestamp((step.folder / RECEIPT).stat().st_mtime, UTC)


class _Receipts:
    """The receipts of one kind of step in a store. They never change, so each is read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._by_name: dict[str, FinishedStep] = {}
        """By the names of their folders."""
        self._by_output: dict[Digest, list[FinishedStep]] = {}
        self._by_input: dict[tuple[str, Digest], list[FinishedStep]] = {}

    def all(self) -> list[FinishedStep]:
        self._refresh()
        return [step for step in self._by_name.values() if _is_there(step)]

    def with_output(self, output: Digest) -> list[FinishedStep]:
        self._refresh()
        return [step for step in self._by_output.get(output, ()) if _is_there(step)]

    def with_input(self, step_input: tuple[str, Digest]) -> list[FinishedStep]:
        self._refresh()
        return [step for step in self._by_input.get(step_input, ()) if _is_there(step)]

    def _refresh(self) -> None:
        """Reads new receipts."""
        names = os.listdir(self._folder) if self._folder.is_dir() else []
        for name in names:
            if name not in self._by_name and (self._folder / name / RECEIPT).is_file():
                with suppress(EvidenceError), reading(name):  # `audit verify` reports it
                    self._add(FinishedStep(self._folder / name, read_receipt(self._folder / name)))

    def _add(self, step: FinishedStep) -> None:
        self._by_name[step.folder.name] = step
        self._by_output.setdefault(step.receipt.output, []).append(step)
        for step_input in step.receipt.inputs.items():
            self._by_input.setdefault(step_input, []).append(step)


@cache
def _load_receipts(folder: Path) -> _Receipts:
    return _Receipts(folder)


def _is_there(step: FinishedStep) -> bool:
    return (step.folder / RECEIPT).is_file()
