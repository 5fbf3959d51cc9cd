"""The first pass of `data prepare`: surveys what is needed before the first sample is made.

A survey covers one batch, and stays in a file until the data set is complete. A repeated run reuses
the surveys of a killed one.
"""

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentworld.data.contents import content_key
from agentworld.data.filters import FilteredTrajectory, filter_trajectories
from agentworld.data.n_grams import Hashes, hash_words, n_grams, text_of
from agentworld.data.near_duplicates import Signatures, sign
from agentworld.recipes.data import PrepareRecipe
from agentworld.records.base import Digest, digest_bytes, digest_json
from agentworld.records.file import write_whole
from agentworld.storage.batches import Batch, read_batch

WORDS_PER_GRAM = 13


class Survey(NamedTuple):
    """One row for each trajectory of a batch that is long enough."""

    digests: npt.NDArray[np.str_]
    """The digests of the recorded trajectories."""
    contents: Hashes
    """Equal for trajectories with equal content."""
    tasks: Hashes
    """Equal for trials of the same task."""
    held_out: npt.NDArray[np.bool_]
    signatures: Signatures
    grams: Hashes
    """The different 13-grams of all rows, row after row."""
    ends: npt.NDArray[np.int64]
    """The end of each row's 13-grams in `grams`."""


class SurveyJob(NamedTuple):
    """A batch, and the folder of its survey."""

    recipe: PrepareRecipe
    source: Digest
    """The digest of all trajectories."""
    batch: Batch
    folder: Path

    @property
    def path(self) -> Path:
        """The file's name has a digest of everything that the survey depends on."""
        parts = [[str(path), start, end] for path, start, end in self.batch]
        key = digest_json([self.recipe.model_dump(mode="json"), self.source, parts])
        return self.folder / f"{key.removeprefix('sha256:')}.npz"


def survey(job: SurveyJob) -> Counter[str]:
    """Writes a batch's survey unless it exists; returns what the filters removed."""
    if not job.path.is_file():
        removed = Counter[str]()
        trajectories = read_batch(job.batch)
        filtered = list(filter_trajectories(trajectories, job.recipe.min_turns, removed))
        result = _survey_of(job.recipe, filtered)
        file = io.BytesIO()
        np.savez(file, removed=np.array(json.dumps(removed)), **result._asdict())
        write_whole(job.path, file.getvalue())
    with np.load(job.path) as arrays:
        return Counter(json.loads(str(arrays["removed"])))


def read_column(path: Path, name: str) -> npt.NDArray[Any]:
    """One column of the survey in a file."""
    with np.load(path) as arrays:
        column: npt.NDArray[Any] = arrays[name]
    return column


def grams_of(path: Path, rows: Iterable[int]) -> Iterator[Hashes]:
    """The 13-grams of some rows of a survey."""
    grams, ends = read_column(path, "grams"), read_column(path, "ends")
    return (grams[ends[row - 1] if row else 0 : ends[row]] for row in rows)


def _survey_of(recipe: PrepareRecipe, filtered: list[FilteredTrajectory]) -> Survey:
    digests = [item.digest for item in filtered]
    trajectories = [item.trajectory for item in filtered]
    dedup, leaks = recipe.near_duplicates is not None, recipe.leaks is not None
    words = hash_words(
        [text_of(trajectory.turns) if dedup or leaks else "" for trajectory in trajectories]
    )
    grams = [n_grams(hashes, WORDS_PER_GRAM) if leaks else hashes[:0] for hashes in words]
    tasks = [
        trajectory.task_id or digest
        for trajectory, digest in zip(trajectories, digests, strict=True)
    ]
    return Survey(
        digests=np.array(digests, dtype=f"U{len(digest_bytes(b''))}"),
        contents=np.array([content_key(trajectory) for trajectory in trajectories], np.uint64),
        tasks=np.array([_hash(task) for task in tasks], np.uint64),
        held_out=np.array([trajectory.held_out for trajectory in trajectories], np.bool_),
        signatures=sign(words if dedup else [hashes[:0] for hashes in words]),
        grams=np.concatenate([np.zeros(0, np.uint64), *grams]),
        ends=np.cumsum([len(hashes) for hashes in grams], dtype=np.int64),
    )


def _hash(text: str) -> int:
    return int(digest_bytes(text.encode()).removeprefix("sha256:")[:16], 16)
