"""The receipts of finished steps in a store, found by what they made or read."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from agentworld.errors import InputError
from agentworld.records.base import Digest
from agentworld.records.step import StepReceipt

RECEIPT = "receipt.json"


class FinishedStep(NamedTuple):
    """A folder and the receipt in it."""

    folder: Path
    receipt: StepReceipt


def read_receipt(folder: Path) -> StepReceipt:
    """The receipt of a finished step; raises InputError where there is none."""
    if not (folder / RECEIPT).is_file():
        raise InputError(
            f"{folder} is no finished step ({RECEIPT} is missing); run that step first"
        )
    return StepReceipt.read(folder / RECEIPT)


def step_that_made(store: Path, step: str, output: Digest) -> FinishedStep | None:
    """The newest finished step of a kind with this output."""
    found = (each for each in finished_steps(store, step) if each.receipt.output == output)
    return newest(found)


def step_that_read(store: Path, step: str, **inputs: Digest) -> FinishedStep | None:
    """The newest finished step of a kind with these inputs among its own."""
    wanted = inputs.items()
    found = (each for each in finished_steps(store, step) if wanted <= each.receipt.inputs.items())
    return newest(found)


def finished_steps(store: Path, step: str) -> Iterator[FinishedStep]:
    """All finished steps of a kind."""
    for path in (store / "steps" / step).glob(f"*/{RECEIPT}"):
        yield FinishedStep(path.parent, StepReceipt.read(path))


def newest(found: Iterable[FinishedStep]) -> FinishedStep | None:
    """The one that was finished last."""
    return max(found, key=lambda step: (step.folder / RECEIPT).stat().st_mtime, default=None)
