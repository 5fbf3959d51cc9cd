"""Rows of CSV and parquet files, and the steps in these rows."""

import gzip
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from agentworld.data.importers import importer_of, tables
from agentworld.data.importers.tables import table_rows
from agentworld.storage.source import files_of
from make import logs

STEPS = {"action": "do", "observation": "see", "alignment": "same row", "episode": "id"}
CSV = 'id,do,see.text\n1,a,"two\nlines"\n1,b,\n2,"say ""c""",é\n'


def rows(folder, data, name="a.csv", paths=()):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    (file,) = files_of(str(path))
    return list(table_rows(file, paths))


def problems(folder, data, **options):
    return [(row.place, row.problem) for row in rows(folder, data, **options)]


def write_parquet(folder, table, **options):
    path = folder / "a.parquet"
    parquet.write_table(pyarrow.table(table), path, **options)
    return path.read_bytes()


def test_a_row_of_csv_is_an_object_and_an_empty_cell_an_empty_text(tmp_path):
    expected = [
        ("line 2", {"id": "1", "do": "a", "see.text": "two\nlines"}),
        ("line 4", {"id": "1", "do": "b", "see.text": ""}),
        ("line 5", {"id": "2", "do": 'say "c"', "see.text": "é"}),
    ]
    for data in (CSV, "\ufeff" + CSV, CSV.replace("\n2", "\n\n2").replace("line 5", "line 6")):
        entries = [(row.place, row.value) for row in rows(tmp_path, data)]
        assert [value for _, value in entries] == [value for _, value in expected]
    assert [(row.place, row.value) for row in rows(tmp_path, CSV)] == expected


def test_tabs_and_compression_are_detected_by_the_file_name(tmp_path):
    assert rows(tmp_path, "a\tb\n1\t,\n", name="a.tsv")[0].value == {"a": "1", "b": ","}
    data = gzip.compress(CSV.encode())
    assert [row.value for row in rows(tmp_path, data, name="b.csv.gz")][2]["see.text"] == "é"


def test_csv_rows_are_grouped_into_episodes(tmp_path):
    options = STEPS | {"observation": "see.text", "end": ""}
    first, second = logs.read("steps", tmp_path, CSV, name="a.csv", **options)
    assert logs.turns(first) == [("a", "two\nlines"), ("b", "")]
    assert logs.turns(second) == [('say "c"', "é")]


def test_a_csv_end_value_is_compared_as_text(tmp_path):
    table = "id,do,see\n1,a,0\n1,-1,1\n"
    options = STEPS | {"alignment": "next state", "end": -1}
    (record,) = logs.read("steps", tmp_path, table, name="a.csv", **options)
    assert logs.turns(record) == [("a", "1")]


def test_a_damaged_row_of_csv_is_a_problem_and_the_others_are_read(tmp_path):
    data = 'a,b\n1\n1,2\n"x"y,2\n3,4\n'
    assert problems(tmp_path, data) == [
        ("line 2", "it has 1 cells, and the table 2 columns"),
        ("line 3", ""),
        ("line 4", "it is no row of CSV: ',' expected after '\"'"),
        ("line 5", ""),
    ]


@pytest.mark.parametrize("name", ["a.csv.gz", "a.tsv.gz"])
def test_a_damaged_compressed_table_is_a_problem(tmp_path, name):
    data = gzip.compress("".join(f"{row},{row**9}\n" for row in range(500)).encode())
    *_, last = rows(tmp_path, data[:40] + b"\xff" * 30 + data[70:], name=name)
    assert f"{name} cannot be read" in last.problem


def test_an_unclosed_quote_is_a_problem(tmp_path):
    assert problems(tmp_path, 'a,b\n1,2\n1,"2\n') == [
        ("line 2", ""),
        ("line 3", "it is no row of CSV: unexpected end of data"),
    ]


@pytest.mark.parametrize("data", ["", "a,a\n1,2\n", "\n1,2\n"])
def test_missing_or_duplicate_column_names_are_a_problem(tmp_path, data):
    ((_, problem),) = problems(tmp_path, data)
    assert "its first line names no columns, or one of them twice" in problem


def test_a_line_that_is_too_long_ends_a_table(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROW_BYTES", 50)
    data = "a,b\n1,2\n" + "x" * 60 + ",2\n3,4\n"
    assert problems(tmp_path, data) == [
        ("line 2", ""),
        ("", "a.csv cannot be read after line 2: a line is longer than 50 bytes"),
    ]
    assert "field larger than field limit" in problems(tmp_path, 'a\n"' + "x\n" * 60 + '"\n')[0][1]


def test_a_non_utf8_byte_is_a_problem_of_its_episode_only(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,do,see\n1,a,\xff\n2,b,x\n")
    importer = importer_of("steps")
    bad_item, good_item = importer.read(files_of(str(path))[0], importer.options(**STEPS), "text")
    assert "a text in it is no Unicode" in bad_item.problem
    assert logs.turns(good_item) == [("b", "x")]


def test_parquet_rows_contain_only_the_named_columns(tmp_path):
    time = datetime(2026, 1, 2, tzinfo=UTC)
    table = {
        "id": [2**63 - 1, 1],
        "step": [{"do": "a"}, None],
        "see.text": ["1", ""],
        "when": [time, None],
        "price": [Decimal("1.50"), None],
        "screenshot": [b"\xff", b""],
    }
    data = write_parquet(tmp_path, table)
    paths = ["id", "step.do", "see.text", "when", "price", "nowhere", ""]
    assert rows(tmp_path, data, name="a.parquet", paths=paths) == [
        (
            "row 0",
            {
                "id": 2**63 - 1,
                "step": {"do": "a"},
                "see.text": "1",
                "when": "2026-01-02T00:00:00+00:00",
                "price": "1.50",
            },
            "",
        ),
        ("row 1", {"id": 1, "step": None, "see.text": "", "when": None, "price": None}, ""),
    ]


def test_a_bytes_cell_in_a_named_column_is_a_problem(tmp_path):
    data = write_parquet(tmp_path, {"a": [b"\xff"]})
    (row,) = rows(tmp_path, data, name="a.parquet", paths=["a"])
    assert row.problem == "a cell is bytes and no text; name other columns"


def test_parquet_steps_are_grouped_into_episodes_across_batches(tmp_path):
    count = 3 * tables._BATCH
    table = {"id": [n // 2 for n in range(count)], "do": ["a"] * count, "see": ["1"] * count}
    path = tmp_path / "b.parquet"
    path.write_bytes(write_parquet(tmp_path, table, row_group_size=100))
    importer = importer_of("steps")
    (file,) = files_of(str(path))
    records = list(importer.read(file, importer.options(**STEPS), "text"))
    assert len(records) == count // 2
    assert all(logs.turns(record) == [("a", "1")] * 2 for record in records)


def test_lists_in_a_parquet_row_are_steps(tmp_path):
    table = {"run": [[{"do": "a", "see": "1"}, {"do": "b", "see": None}]]}
    path = tmp_path / "b.parquet"
    path.write_bytes(write_parquet(tmp_path, table))
    importer = importer_of("steps")
    options = importer.options(action="do", observation="see", alignment="same row", steps="run")
    (record,) = importer.read(files_of(str(path))[0], options, "text")
    assert logs.turns(record) == [("a", "1")]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(cuts=st.data())
def test_a_damaged_table_is_read_as_episodes_or_problems(tmp_path, kind, cuts):
    table = {"id": ["1", "1", "2"], "do": ["a", "b", "c"], "see": ["1", "2", ""]}
    data = write_parquet(tmp_path, table) if kind == "parquet" else CSV.encode()
    offset = cuts.draw(st.integers(0, len(data)))
    data = data[:offset] + cuts.draw(st.binary(max_size=4)) + data[offset + cuts.draw(st.just(2)) :]
    path = tmp_path / f"damaged.{kind}"
    path.write_bytes(data)
    importer = importer_of("steps")
    (file,) = files_of(str(path))
    records = list(importer.read(file, importer.options(**STEPS), "text"))
    assert not records or logs.none_is_lost(records)
