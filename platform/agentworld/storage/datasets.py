"""The data sets of a store, addressed by folder, digest or the start of a digest."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.records.base import Digest
from agentworld.records.dataset import DataSet, Parent
from agentworld.records.file import input_errors, open_regular, read_lines
from agentworld.records.garbled import reading
from agentworld.records.quarantine import QUARANTINE, QuarantinedRecord
from agentworld.records.sample import Pool, Sample
from agentworld.storage.pools import MANIFEST, read_dataset
from agentworld.storage.receipts import finished_at, finished_steps, step_that_made

_ROWS_AT_ONCE = 10_000


class StoredDataSet(NamedTuple):
    """A data set, its folder, and the store that the folder is in."""

    dataset: DataSet
    folder: Path
    store: Path

    @property
    def digest(self) -> Digest:
        """The digest that identifies the data set."""
        return self.dataset.digest

    def quarantine(self, parent: Parent) -> Iterator[QuarantinedRecord]:
        """The records that an import left out; none if its folder is not in the store."""
        step = step_that_made(self.store, "collect", parent.collected)
        file = step.folder / QUARANTINE if step else None
        if file and file.is_file():
            with input_errors(file):
                for line in read_lines(file):
                    with reading(str(file)):
                        yield QuarantinedRecord.model_validate_json(line)

    def trajectories(self) -> set[Digest]:
        """The digests of all trajectories in its pools; raises EvidenceError for a broken pool."""
        return {
            row["trajectory"]
            for pool in self.dataset.pools
            for row in self._rows(pool, _ROWS_AT_ONCE, ["trajectory"])
        }

    def first_samples(self, pool: Pool, num: int) -> list[Sample]:
        """The first samples of a pool; raises EvidenceError for a broken pool."""
        with reading(str(self.folder)):
            rows = islice(self._rows(pool, num), num)
            return [Sample.model_validate(row) for row in rows]

    def _rows(
        self, pool: Pool, at_once: int, columns: list[str] | None = None
    ) -> Iterator[dict[str, Any]]:
        path = self.folder / self.dataset.pools[pool].file
        with reading(str(path)), open_regular(path) as source, pq.ParquetFile(source) as file:
            for batch in file.iter_batches(at_once, columns=columns):
                yield from batch.to_pylist()


def list_datasets(store: Path) -> list[StoredDataSet]:
    """The data sets prepared in a store, the newest first; `audit verify` reports garbled ones."""
    steps = sorted(finished_steps(store, "prepare"), key=finished_at, reverse=True)
    datasets: dict[Digest, StoredDataSet] = {}
    for step in steps:
        with suppress(EvidenceError, InputError):
            dataset = read_dataset(step.folder)
            datasets.setdefault(dataset.digest, StoredDataSet(dataset, step.folder, store))
    return list(datasets.values())


def prepared_dataset(digest: Digest, store: Path) -> StoredDataSet | None:
    """The data set prepared in a store; null if there is none; raises EvidenceError if its manifest
    has changed.
    """
    step = step_that_made(store, "prepare", digest)
    if step is None:
        return None
    with reading(str(step.folder / MANIFEST)):
        stored = StoredDataSet(read_dataset(step.folder), step.folder, store)
    if stored.digest != digest:
        raise EvidenceError(f"{step.folder / MANIFEST} is not that of {digest}; restore it")
    return stored


def readable_dataset(digest: Digest, store: Path) -> DataSet | None:
    """Like `prepared_dataset`, but null for a garbled one, which `audit verify` reports."""
    with suppress(EvidenceError, InputError):
        stored = prepared_dataset(digest, store)
        return stored.dataset if stored else None
    return None


def find_dataset(name: str, store: Path) -> StoredDataSet:
    """The data set in a folder, or with a digest that starts with the name.

    Raises NotFound, and InputError if several match.
    """
    folder = Path(name)
    if folder.is_dir():
        return _in_folder(folder, store)
    start = name if name.startswith("sha256:") else f"sha256:{name}"
    datasets = list_datasets(store)
    matches = [dataset for dataset in datasets if dataset.digest.startswith(start)]
    if not matches:
        names = ", ".join(dataset.digest for dataset in datasets) or "none yet; run `data prepare`"
        raise NotFound(
            f"{name} is neither a folder nor a data set of {store}; data sets are {names}"
        )
    if len(matches) > 1:
        digests = ", ".join(dataset.digest for dataset in matches)
        raise InputError(f"{start} is the start of {digests}; give more characters")
    return matches[0]


def _in_folder(folder: Path, store: Path) -> StoredDataSet:
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{folder} has no {MANIFEST}; give the folder of a finished `prepare`")
    is_step = folder.resolve().parent.parent.name == "steps"
    own = folder.resolve().parents[2] if is_step else store
    return StoredDataSet(read_dataset(folder), folder, own)
