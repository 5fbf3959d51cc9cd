"""Writes rows to a Parquet file in groups, with constant memory use."""

from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, object]
"""Plain values by the names of the columns."""

_ROWS_PER_GROUP = 1_000
_BYTES_PER_GROUP = 16 << 20


class RowWriter:
    """Takes rows one by one; the file appears if the `with` block ends without an error."""

    def __init__(
        self, path: Path, schema: pa.Schema, *, rows_per_group: int = _ROWS_PER_GROUP
    ) -> None:
        self.num_rows = 0
        self._path = path
        self._draft = path.with_name(path.name + ".draft")
        self._schema = schema
        self._rows_per_group = rows_per_group
        self._file = pq.ParquetWriter(self._draft, schema, compression="zstd")
        self._rows: list[Row] = []
        self._tables: list[pa.Table] = []
        self._num_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._flush()
            self._file.close()
            if kind is None:
                self._draft.replace(self._path)
        finally:
            self._draft.unlink(missing_ok=True)

    def add(self, row: Row) -> None:
        """Appends a row."""
        self._rows.append(row)
        self._num_bytes += sum(len(value) for value in row.values() if isinstance(value, bytes))
        self.num_rows += 1
        if len(self._rows) >= self._rows_per_group or self._num_bytes >= _BYTES_PER_GROUP:
            self._flush()

    def add_table(self, table: pa.Table) -> None:
        """Appends the rows of a table, several small ones in one group."""
        self._tables.append(table)
        self._num_bytes += table.nbytes
        self.num_rows += len(table)
        num_rows = sum(map(len, self._tables))
        if num_rows >= self._rows_per_group or self._num_bytes >= _BYTES_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._tables:
            self._file.write_table(pa.concat_tables(self._tables))
            self._tables.clear()
        if self._rows:
            self._file.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
            self._rows.clear()
        self._num_bytes = 0
