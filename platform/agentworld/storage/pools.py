"""A data set's pools: one Parquet file each, whose samples are nested as in memory.

A pool's digest is over the samples and not over the file, so it does not depend on the version of
Parquet or the compression.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import pyarrow as pa
import pyarrow.parquet as pq

from agentworld.errors import InputError
from agentworld.records.dataset import DataSet, PoolFile
from agentworld.records.file import open_regular
from agentworld.records.sample import Pool, Sample, SampleTurn
from agentworld.records.trajectory import PromptParts
from agentworld.storage.parquet import Row, RowWriter

MANIFEST = "dataset.json"
_ROWS_PER_GROUP = 1_000
_ROWS_PER_BATCH = 64

_ARROW: dict[object, pa.DataType] = {
    str: pa.string(),
    str | None: pa.string(),
    bool: pa.bool_(),
    tuple[str, ...]: pa.list_(pa.string()),
}
_PROMPT = pa.struct([(name, pa.string()) for name in PromptParts.model_fields])
_TURN = pa.struct(
    [(name, _ARROW[field.annotation]) for name, field in SampleTurn.model_fields.items()]
)
_SCHEMA = pa.schema(
    {"trajectory": pa.string(), "domain": pa.string(), "prompt": _PROMPT, "turns": pa.list_(_TURN)}
)


class PoolRows(NamedTuple):
    """Samples in the form of a pool's file; workers can create them in parallel."""

    table: pa.Table
    canonical: bytes
    """The canonical JSON of all samples, in their order."""
    num_turns: int
    num_targets: int
    tags: Counter[str]
    """The number of turns with each tag."""


def pool_rows(samples: Sequence[Sample]) -> PoolRows:
    """Converts samples, in their order."""
    rows = [sample.model_dump(mode="json") for sample in samples]
    turns = [turn for sample in samples for turn in sample.turns]
    return PoolRows(
        table=pa.Table.from_pylist(rows, schema=_SCHEMA),
        canonical=b"".join(map(canonical, rows)),
        num_turns=len(turns),
        num_targets=sum(turn.target for turn in turns),
        tags=Counter(tag for turn in turns for tag in turn.tags),
    )


class PoolWriter:
    """Takes samples; the file appears if the `with` block ends without an error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = RowWriter(path, _SCHEMA, rows_per_group=_ROWS_PER_GROUP)
        self._content = hashlib.sha256()
        self._num_turns = self._num_targets = 0
        self._tags: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.__exit__(kind, error, trace)

    def add(self, rows: PoolRows) -> None:
        """Appends samples."""
        self._content.update(rows.canonical)
        self._num_turns += rows.num_turns
        self._num_targets += rows.num_targets
        self._tags += rows.tags
        self._file.add_table(rows.table)

    def summary(self) -> PoolFile:
        """The summary of all samples added."""
        return PoolFile(
            file=self._path.name,
            content="sha256:" + self._content.hexdigest(),
            num_samples=self._file.num_rows,
            num_turns=self._num_turns,
            num_targets=self._num_targets,
            tags=dict(sorted(self._tags.items())),
        )


def read_dataset(folder: Path) -> DataSet:
    """The manifest of the data set in a folder."""
    return DataSet.read(folder / MANIFEST)


def read_pool(folder: Path, dataset: DataSet, pool: Pool) -> Iterator[Sample]:
    """A pool's samples, in their order.

    Raises InputError if the file does not match the manifest; a changed sample is noticed after the
    last one, when the digest is complete.
    """
    if pool not in dataset.pools:
        raise InputError(f"the data set in {folder} has no pool {pool!r}; prepare it again")
    path = folder / dataset.pools[pool].file
    content = hashlib.sha256()
    for row in _read_rows(path):
        content.update(canonical(row))
        yield Sample.model_validate(row)
    if "sha256:" + content.hexdigest() != dataset.pools[pool].content:
        raise InputError(f"the samples of {path} do not match its {MANIFEST}; prepare it again")


def canonical(row: Row) -> bytes:
    """Canonical JSON (RFC 8785) for rows without numbers or unusual keys; five times as fast as the
    general form.
    """
    text = json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode() + b"\n"


def _read_rows(path: Path) -> Iterator[Row]:
    try:
        with open_regular(path) as source, pq.ParquetFile(source) as file:
            if not file.schema_arrow.equals(_SCHEMA):
                raise InputError(f"{path} has other columns than a pool; prepare it again")
            for batch in file.iter_batches(_ROWS_PER_BATCH):
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException) as error:
        problem = str(error).splitlines()[0][:200]
        raise InputError(f"cannot read the pool {path}: {problem}; prepare it again") from error
