"""Selects the checkpoint to resume from: the newest whose files agree with its manifest.

A checkpoint's manifest of all files is written last, and durably. A checkpoint without a manifest
is incomplete, because its process was killed.
"""

import logging
from pathlib import Path

from agentworld.errors import InputError
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.file import read_regular, sync
from agentworld.storage.folder import Disk

CHECKPOINTS = "checkpoints"
"""The folder of a training's checkpoints, in its output folder."""
_MANIFEST = "manifest.json"
_log = logging.getLogger(__name__)


def seal(checkpoint: Path) -> None:
    """Writes a checkpoint's manifest, after all its files are durable."""
    for path in (checkpoint, *checkpoint.rglob("*")):
        sync(path)
    Disk(checkpoint).write(_MANIFEST, _manifest(checkpoint).canonical)
    sync(checkpoint.parent)


def sealed_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints with a manifest."""
    return [manifest.parent for manifest in folder.glob(f"checkpoint-*/{_MANIFEST}")]


def newest_checkpoint(folder: Path) -> str | None:
    """The name of the newest checkpoint that agrees with its manifest; null if there is none."""
    for checkpoint in sorted(folder.glob("checkpoint-*"), key=_step, reverse=True):
        if _is_whole(checkpoint):
            return checkpoint.name
        _log.warning("%s was changed or damaged; using the one before it", checkpoint)
    return None


def newer_checkpoints(folder: Path, step: int) -> list[Path]:
    """The checkpoints of later steps than the one that a training resumes from."""
    return [checkpoint for checkpoint in folder.glob("checkpoint-*") if _step(checkpoint) > step]


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def _is_whole(checkpoint: Path) -> bool:
    try:
        return read_regular(checkpoint / _MANIFEST) == _manifest(checkpoint).canonical
    except (OSError, InputError):
        return False


def _manifest(checkpoint: Path) -> ArtifactManifest:
    """The digests of the files that are there now, without the manifest."""
    files = ArtifactManifest.of(checkpoint).files
    return ArtifactManifest(files={name: files[name] for name in files if name != _MANIFEST})
