"""Checks that the outputs of finished steps in a store match their receipts.

Receipts are unsigned: a writer of a step's folder can also rewrite its receipt. The final results
(versions, simulators, validations) are signed or pinned.
"""

from collections.abc import Iterator
from pathlib import Path

from agentworld.records.base import Digest
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.garbled import readable
from agentworld.storage.receipts import RECEIPT, read_receipt
from agentworld.storage.trajectories import MANIFEST, read_collected

_TRAININGS = ("cpt", "sft", "rl", "imitate", "agent")
_MODEL = "model"
_VALIDATIONS = "validate"
"""Reported with the signed validations."""


def step_problems(store: Path) -> Iterator[str]:
    """Changed weights and collected trajectories, and unreadable receipts.

    A data set's pools are checked when they are read.
    """
    for receipt in sorted((store / "steps").glob(f"*/*/{RECEIPT}")):
        folder = receipt.parent
        if folder.parent.name != _VALIDATIONS:
            yield from readable(f"what is in {folder}", _problems(folder))


def _problems(folder: Path) -> Iterator[str]:
    receipt_digest, digest = read_receipt(folder).output, _digest_of(folder)
    if digest not in (None, receipt_digest):
        yield (
            f"the digest of {folder} is {digest}, but its step produced {receipt_digest};"
            " restore it"
        )


def _digest_of(folder: Path) -> Digest | None:
    """Null for steps with other outputs, and if the output is not here."""
    step = folder.parent.name
    if step in _TRAININGS and (folder / _MODEL).is_dir():
        return ArtifactManifest.of(folder / _MODEL).digest
    if step == "collect" and (folder / MANIFEST).is_file():
        return read_collected(folder).digest
    return None
