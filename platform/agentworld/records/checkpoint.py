"""What a training stage made: every file of a model, and where it came from."""

from pathlib import Path
from typing import Literal

from agentworld.errors import InputError
from agentworld.records.base import Digest, Record, digest_file

Stage = Literal["cpt", "sft", "rl", "imitation", "agent"]


class ArtifactManifest(Record):
    """Every file of a folder by its digest; the artifact's identity is this record's digest."""

    files: dict[str, Digest]

    @classmethod
    def of(cls, folder: Path) -> "ArtifactManifest":
        """Reads a folder: weights, tokenizer, chat template, generation defaults and the rest."""
        if not folder.is_dir():
            raise InputError(f"there is no folder {folder}; name the folder of a checkpoint")
        names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
        return cls(files={name: digest_file(folder / name) for name in names})

    def verify(self, folder: Path) -> None:
        """Raises InputError naming the first file that is missing, extra or different."""
        found = ArtifactManifest.of(folder).files
        for name in sorted(self.files.keys() | found.keys()):
            if self.files.get(name) != found.get(name):
                raise InputError(
                    f"{folder / name} is not the file of the manifest; restore it or pin anew"
                )


class Checkpoint(Record):
    """A stage's result; `artifact` names its bytes, the rest says how they came to be."""

    stage: Stage
    artifact: Digest
    num_parameters: int
    recipe: dict[str, object]
    """The stage's resolved recipe."""
    parents: tuple[Digest, ...] = ()
    """Artifacts that training started from."""
    data: Digest | None = None
    """The data set that it was trained on."""
    simulator: Digest | None = None
    """The simulator that it was trained in."""
    metrics: dict[str, float] = {}
