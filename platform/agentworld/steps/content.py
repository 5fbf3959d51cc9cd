"""Identifies a recipe's folder by its content, independent of its path."""

from collections.abc import Mapping
from pathlib import Path

from agentworld.errors import InputError
from agentworld.records.base import Digest
from agentworld.records.checkpoint import ArtifactManifest, Checkpoint


def content_of(name: str, folder: str | None) -> dict[str, Digest]:
    """The digest of a folder as an input of this name; empty if no folder is named.

    Raises InputError if the folder does not exist.
    """
    return {name: ArtifactManifest.of(Path(folder)).digest} if folder else {}


def check_unchanged(checkpoint: Checkpoint, content: Mapping[str, Digest]) -> None:
    """Raises InputError if a folder that the recipe names has other content than before."""
    read = {"reward_model": checkpoint.reward_model, "base": next(iter(checkpoint.parents), None)}
    for name in content.keys() & read.keys():
        if read[name] != content[name]:
            raise InputError(
                f"the folder of {name} changed while {checkpoint.stage} read it; train again when"
                " no program writes to it"
            )
