"""Rows of JSON lines, arrays and documents; a damaged row hides no other row."""

import bz2
import gzip
import json

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.data.importers import rows
from agentworld.data.importers.rows import rows_of
from agentworld.storage.source import files_of


def compress(data: bytes) -> bytes:
    """Compresses without the time that gzip writes, so that the bytes are always the same."""
    return gzip.compress(data, mtime=0)


def read(folder, name, data):
    (folder / name).write_bytes(data)
    (file,) = files_of(str(folder / name))
    return list(rows_of(file))


def values(folder, name, data):
    entries = read(folder, name, data)
    assert not [row.problem for row in entries if row.problem]
    return [row.value for row in entries]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", b'{"a": 1}\n\n{"b": [2]}\n'),
        ("a.json", b'{"a": 1}\n{"b": [2]}'),
        ("a.jsonl", b'{"a": 1}{"b": [2]}\n'),
        ("a.jsonl", b'\xef\xbb\xbf{"a": 1}\r\n{"b": [2]}\r\n'),
        ("a.json", b'\xef\xbb\xbf\n [ {"a": 1} , {"b": [2]} ] \n'),
        ("a.json.gz", compress(b'[{"a": 1}, {"b": [2]}]')),
        ("a.jsonl.gz", compress(b'{"a": 1}\n') + compress(b'{"b": [2]}\n')),
        ("a.jsonl.zst", pyarrow.compress(b'{"a": 1}\n{"b": [2]}', "zstd", asbytes=True)),
        ("a.jsonl.bz2", bz2.compress(b'{"a": 1}\n{"b": [2]}')),
    ],
)
def test_a_row_is_a_line_or_an_array_element(tmp_path, name, data):
    assert values(tmp_path, name, data) == [{"a": 1}, {"b": [2]}]


def test_a_document_is_one_row(tmp_path):
    assert values(tmp_path, "a.json", b'{"a":\n {"b": 1}}') == [{"a": {"b": 1}}]


def test_integers_beyond_64_bits_are_exact(tmp_path):
    number = 200754113673326459792359196831899614724
    assert values(tmp_path, "a.json", b"[%d]" % number) == [number]
    assert values(tmp_path, "a.jsonl", b"%d\n" % number) == [number]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.jsonl", b'1\nno\n"\xff"\n2\n', {"line 2": "not JSON", "line 3": "not UTF-8"}),
        ("a.jsonl", b"[" * 100_000 + b"\n1\n2\n", {"line 1": "nested too deeply"}),
        ("a.json", b"[1, 2, {", {"element 2": "not JSON"}),
        ("a.json", b"[1, 2, ", {"element 2": "not JSON"}),
        ("a.json", b"[1, 2", {"element 2": "the array does not end"}),
        ("a.json", b"[1, 2 3]", {"element 2": "the array does not end"}),
        ("a.json", b"[1, 2, " + b"[" * 100_000, {"element 2": "nested too deeply"}),
        ("a.json.gz", compress(b"[1, 2, 3]")[:-10], {"": "to its end"}),
        ("a.jsonl.gz", compress(b"1\n2\n" + b"3" * 9)[:-9], {"": "to its end"}),
    ],
)
def test_damage_is_reported_and_undamaged_rows_are_read(tmp_path, name, data, expected):
    entries = read(tmp_path, name, data)
    assert [row.value for row in entries if not row.problem][:2] == [1, 2]
    problems = {row.place: row.problem for row in entries if row.problem}
    assert problems.keys() == expected.keys()
    assert all(words in problems[place] for place, words in expected.items())


def test_a_non_utf8_byte_in_an_array_affects_one_element(tmp_path):
    entries = read(tmp_path, "a.json", b'[1, "\xff", 2]')
    assert [row.value for row in entries] == [1, "\udcff", 2]


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_a_problem(tmp_path, data):
    assert [row.problem for row in read(tmp_path, "a.json", data)] == ["the file is empty"]


@pytest.mark.parametrize("name", ["a.gz", "a.zst", "a.json.bz2"])
def test_a_file_with_a_wrong_compression_suffix_is_a_problem(tmp_path, name):
    (row,) = read(tmp_path, name, b"nothing that is compressed")
    assert "cannot be read to its end" in row.problem


def test_a_too_long_line_is_a_problem_and_the_next_line_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "MOST_ROW_BYTES", 1_000)
    entries = read(tmp_path, "a.jsonl", b'"' + b"a" * 5_000 + b'"\n"b"\n')
    assert [(row.place, row.value) for row in entries] == [("line 1", None), ("line 2", "b")]
    assert "longer than 1,000 bytes" in entries[0].problem


def test_a_too_long_document_is_a_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "MOST_DOCUMENT_BYTES", 10)
    (row,) = read(tmp_path, "a.json", b'{"a": "bcdefghij"}')
    assert "the document is longer than 10 bytes; split it" in row.problem


@pytest.mark.parametrize("offset", [11, 20, 60, -9, -5])
def test_the_rows_of_a_damaged_gzip_end_with_a_problem(tmp_path, offset):
    content = bytearray(compress(b'{"a": 1}\n' * 3_000))
    content[offset] ^= 255
    *_, last = read(tmp_path, "a.jsonl.gz", bytes(content))
    assert last.problem


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=99),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@pytest.mark.compute
@given(st.lists(TREES, min_size=1), st.booleans())
def test_every_value_is_read_unchanged(tmp_path_factory, trees, as_lines):
    folder = tmp_path_factory.mktemp("rows")
    text = json.dumps(trees, ensure_ascii=False, indent=1)
    if as_lines:
        text = "\n".join(json.dumps(tree, ensure_ascii=False) for tree in trees)
    name = "a.jsonl" if as_lines else "a.json"
    assert values(folder, name, text.encode("utf-8", "surrogatepass")) == trees
