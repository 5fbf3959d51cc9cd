"""What a training stage made: every file of a model, and where it came from."""

from concurrent.futures import ThreadPoolExecutor
from operator import not_
from pathlib import Path
from typing import Literal

from pydantic import Field

from agentworld.errors import InputError
from agentworld.records.base import Digest, JsonObject, Record, digest_file
from agentworld.records.corpus import CorpusUse
from agentworld.records.progress import OnProgress, ProgressCounter, ignore_progress

_MOST_AT_ONCE = 8
"""Files that are read beside each other: one for each processor, or a store that is far away."""

Stage = Literal["cpt", "sft", "rl", "imitation", "agent"]
WORLD_STAGES: tuple[Stage, ...] = ("cpt", "sft", "rl")
"""Of a world model, in their order."""

BESIDE = (".cache", ".git", ".gitattributes", ".github", ".gitignore", "model.sig")
"""What no model is made of: the bookkeeping of git and of `hf download`, and a signature over
the rest. `model_signing` is told to leave it out."""


class ArtifactManifest(Record):
    """Every file of a model's folder by its digest; the artifact is named by this record's digest.

    That digest covers the files' names too: a renamed chat template is not found, and another
    observation follows. `signing.model_signing` gives the OpenSSF form, whose own does not.
    """

    files: dict[str, Digest]

    @classmethod
    def of(cls, folder: Path, on_progress: OnProgress = ignore_progress) -> "ArtifactManifest":
        """Reads a folder: weights, tokenizer, chat template, generation defaults and the rest."""
        files = model_files(folder)
        counter = ProgressCounter(on_progress, sum(path.stat().st_size for path in files.values()))
        with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
            digests = pool.map(lambda path: digest_file(path, counter.add), files.values())
            return cls(files=dict(zip(files, digests, strict=True)))

    def verify(self, folder: Path, on_progress: OnProgress = ignore_progress) -> None:
        """Raises InputError naming the first file that is missing, extra or different."""
        files = ArtifactManifest.of(folder, on_progress).files
        for name in sorted(self.files.keys() | files.keys()):
            if self.files.get(name) != files.get(name):
                raise InputError(
                    f"{folder / name} is not the file of the manifest; restore it or pin again"
                )


def model_files(folder: Path) -> dict[str, Path]:
    """Every file of a model by its name in the folder, in the order of their names.

    Raises InputError for what could be read and would not be listed: a link to a folder, a pipe.
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; name the folder of a checkpoint")
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if name.parts[0] in BESIDE:
            continue
        if path.is_file():
            files[name.as_posix()] = path
        elif path.is_symlink() or not path.is_dir():
            raise InputError(f"{path} is neither a file nor a folder of its own; replace it")
    return files


class Checkpoint(Record):
    """A stage's result; `artifact` names its bytes, the rest says how they came to be."""

    stage: Stage
    artifact: Digest
    num_parameters: int
    recipe: JsonObject
    """The stage's resolved recipe."""
    parents: tuple[Digest, ...] = ()
    """Artifacts that training started from."""
    base: str | None = Field(None, exclude_if=lambda address: address is None)
    """Where the first of these was fetched from; null for a folder and for a stage of ours."""
    from_scratch: bool = Field(False, exclude_if=lambda value: not value)
    """Whether training began with random weights, here or in a stage before."""
    data: Digest | None = None
    """The data set that it was trained on."""
    traces: Digest | None = Field(None, exclude_if=lambda digest: digest is None)
    """What a teacher wrote in place of the observations of that data."""
    corpora: dict[str, CorpusUse] = Field({}, exclude_if=not_)
    """What was trained on beside that data, by the names of the recipe."""
    domains: tuple[str, ...] = ()
    """The kinds of world in that data, and in the data of its parents."""
    simulator: Digest | None = None
    """The simulator that it was trained in."""
    reward_model: Digest | None = Field(None, exclude_if=lambda digest: digest is None)
    """The embedding model that its rewards were asked of."""
    metrics: dict[str, float] = {}
