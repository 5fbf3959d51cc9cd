"""The output of a training stage: every file of a model, and its origin."""

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
"""Files that are read concurrently: for several processors, or a slow remote store."""

Stage = Literal["cpt", "sft", "rl", "imitation", "agent"]
WORLD_STAGES: tuple[Stage, ...] = ("cpt", "sft", "rl")
"""The stages of a world model, in order."""

BESIDE = (".cache", ".git", ".gitattributes", ".github", ".gitignore", "model.sig")
"""Files that are not part of a model: the bookkeeping of git and of `hf download`, and a signature
over the rest. `model_signing` must leave them out, too.
"""


class ArtifactManifest(Record):
    """Every file of a model's folder with its digest; the artifact is identified by this record's
    digest.

    That digest covers the files' names, too: a renamed chat template is not loaded, which changes
    observations. `signing.model_signing` gives the OpenSSF form, whose digest does not cover them.
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
                    f"{folder / name} does not match the manifest; restore it or pin again"
                )


def model_files(folder: Path) -> dict[str, Path]:
    """Every file of a model by its relative name, sorted by name.

    Raises InputError for readable entries that would not be listed: a link to a folder, a pipe.
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
            raise InputError(f"{path} is neither a regular file nor a folder; replace it")
    return files


class Checkpoint(Record):
    """A stage's result; `artifact` identifies its bytes, the other fields its origin."""

    stage: Stage
    artifact: Digest
    num_parameters: int
    recipe: JsonObject
    """The stage's resolved recipe."""
    parents: tuple[Digest, ...] = ()
    """The artifacts that training started from."""
    base: str | None = Field(None, exclude_if=lambda address: address is None)
    """The download address of the first parent; null for a folder and for a stage of ours."""
    from_scratch: bool = Field(False, exclude_if=lambda value: not value)
    """Whether training began with random weights, in this stage or an earlier one."""
    data: Digest | None = None
    """The data set that the stage was trained on."""
    traces: Digest | None = Field(None, exclude_if=lambda digest: digest is None)
    """A teacher's traces that replaced observations of that data."""
    corpora: dict[str, CorpusUse] = Field({}, exclude_if=not_)
    """Corpora in addition to that data, by their names in the recipe."""
    domains: tuple[str, ...] = ()
    """The domains of that data, and of its parents' data."""
    simulator: Digest | None = None
    """The simulator that the agent was trained in."""
    reward_model: Digest | None = Field(None, exclude_if=lambda digest: digest is None)
    """The embedding model that computed the rewards."""
    metrics: dict[str, float] = {}
