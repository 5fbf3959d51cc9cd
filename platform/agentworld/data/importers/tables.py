"""The rows of a table: CSV, parquet, or what `rows_of` reads."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from io import BufferedIOBase

from agentworld.data.importers.rows import MOST_ROW_BYTES, Row, rows_of
from agentworld.storage.source import UNREADABLE, SourceFile

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_BATCH = 256


def table_rows(file: SourceFile, paths: Sequence[str]) -> Iterator[Row]:
    """Yields each row as an object of its columns; of parquet only the columns in the paths."""
    if file.suffix in _DELIMITERS:
        yield from _until_damage(file, _csv_rows(file, _DELIMITERS[file.suffix]))
    elif file.suffix == ".parquet":
        yield from _until_damage(file, _parquet_rows(file, paths))
    else:
        yield from rows_of(file)


def _until_damage(file: SourceFile, rows: Iterator[Row]) -> Iterator[Row]:
    place = ""
    try:
        for row in rows:
            place = row.place
            yield row
    except (*UNREADABLE, ValueError, csv.Error) as error:
        after = f" after {place}" if place else ""
        yield Row("", problem=f"{file.name} cannot be read{after}: {error}")


def _csv_rows(file: SourceFile, delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(MOST_ROW_BYTES)
    with file.open() as stream:
        reader = csv.reader(_lines(stream), delimiter=delimiter, strict=True)
        names = next(reader, [])
        if not names or len(set(names)) < len(names):
            raise ValueError(f"its first line names no columns, or one of them twice: {names[:9]}")
        while True:
            place = f"line {reader.line_num + 1}"
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield Row(place, problem=f"it is no row of CSV: {error}")
                continue
            if len(cells) == len(names):
                yield Row(place, dict(zip(names, cells, strict=True)))
            elif cells:
                problem = f"it has {len(cells)} cells, and the table {len(names)} columns"
                yield Row(place, problem=problem)


def _lines(stream: BufferedIOBase) -> Iterator[str]:
    """Decodes lines; an invalid byte becomes a lone surrogate, so that only its row is refused."""
    encoding = "utf-8-sig"
    while line := stream.readline(MOST_ROW_BYTES + 1):
        if len(line) > MOST_ROW_BYTES:
            raise ValueError(f"a line is longer than {MOST_ROW_BYTES:,} bytes")
        yield line.decode(encoding, "surrogateescape")
        encoding = "utf-8"


def _parquet_rows(file: SourceFile, paths: Sequence[str]) -> Iterator[Row]:
    import pyarrow  # noqa: PLC0415  it takes a third of a second
    from pyarrow import parquet  # noqa: PLC0415

    names = {name for path in paths for name in (path, path.partition(".")[0])}
    number = 0
    with file.open() as stream:
        try:
            table = parquet.ParquetFile(pyarrow.PythonFile(stream))
            columns = [name for name in table.schema_arrow.names if name in names]
            for batch in table.iter_batches(_BATCH, columns=columns):
                for cells in batch.to_pylist():
                    yield _row(f"row {number}", cells)
                    number += 1
        except pyarrow.ArrowException as error:
            raise ValueError(str(error)) from error


def _row(place: str, cells: Mapping[str, object]) -> Row:
    try:
        return Row(place, json.loads(json.dumps(cells, default=_plain)))
    except (TypeError, ValueError) as error:
        return Row(place, problem=str(error))


def _plain(value: object) -> str:
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"a cell is {type(value).__name__} and no text; name other columns")
