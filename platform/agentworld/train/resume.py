"""Which checkpoint a training goes on from: the newest whose files are all as they were written.

A manifest of every file is written last, and durably; a checkpoint without one is what a killed
process was writing.
"""

import logging
from pathlib import Path

from agentworld.errors import InputError
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.file import read_regular, sync
from agentworld.storage.disk import Disk

CHECKPOINTS = "checkpoints"
"""The folder of a training's checkpoints, in what it makes."""
_MANIFEST = "manifest.json"
_log = logging.getLogger(__name__)


def seal(checkpoint: Path) -> None:
    """Says for good what a checkpoint's files are, once a power cut can take none of them away."""
    for path in (checkpoint, *checkpoint.rglob("*")):
        sync(path)
    Disk(checkpoint).write(_MANIFEST, _manifest(checkpoint).canonical)
    sync(checkpoint.parent)


def sealed_checkpoints(folder: Path) -> list[Path]:
    """Those that were written to their end."""
    return [manifest.parent for manifest in folder.glob(f"checkpoint-*/{_MANIFEST}")]


def newest_checkpoint(folder: Path) -> str | None:
    """The name of the newest that agrees with its manifest; null where there is none."""
    for checkpoint in sorted(folder.glob("checkpoint-*"), key=_step, reverse=True):
        if _is_whole(checkpoint):
            return checkpoint.name
        _log.warning("%s is not as it was written; the one before it is taken", checkpoint)
    return None


def newer_checkpoints(folder: Path, step: int) -> list[Path]:
    """Those of later steps than the one that a training goes on from."""
    return [checkpoint for checkpoint in folder.glob("checkpoint-*") if _step(checkpoint) > step]


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def _is_whole(checkpoint: Path) -> bool:
    try:
        return read_regular(checkpoint / _MANIFEST) == _manifest(checkpoint).canonical
    except (OSError, InputError):
        return False


def _manifest(checkpoint: Path) -> ArtifactManifest:
    """Of what is there now, but for the manifest itself."""
    files = ArtifactManifest.of(checkpoint).files
    return ArtifactManifest(files={name: files[name] for name in files if name != _MANIFEST})
