"""A folder that a recipe names counts by its content and never by where it lies."""

from collections.abc import Mapping
from pathlib import Path

from agentworld.errors import InputError
from agentworld.records.base import Digest
from agentworld.records.checkpoint import ArtifactManifest, Checkpoint


def content_of(name: str, folder: str | None) -> dict[str, Digest]:
    """What the folder holds, as an input of this name; nothing where none is named.

    Raises InputError where it is not there.
    """
    return {name: ArtifactManifest.of(Path(folder)).digest} if folder else {}


def check_unchanged(checkpoint: Checkpoint, content: Mapping[str, Digest]) -> None:
    """Raises InputError where a folder that the recipe names is another one than before."""
    read = {"reward_model": checkpoint.reward_model, "base": next(iter(checkpoint.parents), None)}
    for name in content.keys() & read.keys():
        if read[name] != content[name]:
            raise InputError(
                f"the folder of {name} was changed while {checkpoint.stage} read it; train again"
                " when nobody writes there"
            )
