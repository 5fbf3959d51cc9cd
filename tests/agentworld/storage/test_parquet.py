import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agentworld.storage import parquet
from agentworld.storage.parquet import RowWriter

SCHEMA = pa.schema({"text": pa.string()})


def group_sizes(path):
    """The number of rows of each group of a file."""
    metadata = pq.ParquetFile(path).metadata
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


@pytest.fixture
def long_text(monkeypatch):
    """A text of which four fill a group."""
    monkeypatch.setattr(parquet, "_BYTES_PER_GROUP", 4_000)
    return "a" * 1_000


def test_small_tables_share_a_group_of_at_most_the_given_rows(tmp_path):
    with RowWriter(tmp_path / "a.parquet", SCHEMA, rows_per_group=3) as file:
        for _ in range(7):
            file.add_table(pa.table({"text": ["a"]}, SCHEMA))
    assert group_sizes(tmp_path / "a.parquet") == [3, 3, 1]


def test_large_tables_are_written_before_they_fill_the_memory(tmp_path, long_text):
    with RowWriter(tmp_path / "a.parquet", SCHEMA) as file:
        for _ in range(10):
            file.add_table(pa.table({"text": [long_text]}, SCHEMA))
    assert group_sizes(tmp_path / "a.parquet") == [4, 4, 2]
