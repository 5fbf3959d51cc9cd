"""Malformed files, in every format: no traceback, and every row is counted."""

import pytest

from agentworld.data.importers.base import _KINDS, importer_of
from agentworld.storage.source import files_of
from make import logs, malformed

FORMS = sorted(malformed.RECORDS)
ONE_EPISODE_FORMS = {"claude_code", "spans"}
"""All rows form one episode, so an additional row adds no episode."""
NUM_READABLE = {"steps": 2, "asciinema": 3, **dict.fromkeys(ONE_EPISODE_FORMS, 1)}
"""Of four episodes with an invalid row in the middle: in a table, the two adjacent ones may lack a
step; in terminals, it is a part of the previous one.
"""


def test_every_format_has_a_test_record():
    assert _KINDS.names == FORMS


def read(tmp_path, form, data, name="log.jsonl"):
    """The records of a file; every record is either a trajectory or a problem."""
    (tmp_path / name).write_bytes(data)
    importer = importer_of(form)
    options = importer.options(**malformed.OPTIONS.get(form, {}))
    records = list(importer.read(files_of(str(tmp_path / name))[0], options, "text"))
    assert all((record.trajectory is None) == bool(record.problem) for record in records)
    return records


def observations(records):
    """The observations without the template that one harness puts around them."""
    turns = [turn for record in records if record.trajectory for turn in record.trajectory.turns]
    start, end = "<returncode>0</returncode>\n<output>\n", "</output>"
    return [turn.observation.removeprefix(start).removesuffix(end) for turn in turns]


def surround_row(form, row):
    """The row in the middle of four episodes."""
    before, after = (
        b"".join(malformed.lines_of(form, name=name) for name in names) for names in ("ab", "cd")
    )
    return before + row + b"\n" + after


def problems(records):
    return [record.problem for record in records if record.problem]


@pytest.mark.parametrize("form", FORMS)
def test_a_whole_record_is_one_turn(tmp_path, form):
    records = read(tmp_path, form, malformed.lines_of(form))
    assert not problems(records)
    assert observations(records) == [malformed.SEEN]


@pytest.mark.parametrize("form", FORMS)
def test_a_byte_order_mark_and_blank_lines_change_nothing(tmp_path, form):
    data = b"\xef\xbb\xbf\n \r\n" + malformed.lines_of(form) + b"\n\n"
    assert observations(read(tmp_path, form, data)) == [malformed.SEEN]
    data = b"\xef\xbb\xbf" + malformed.lines_of(form).replace(b"\n", b"\r\n")
    assert observations(read(tmp_path, form, data)) == [malformed.SEEN]


BAD_LINES = {
    "half a record": b'{"messages": [{"role": "assis',
    "no JSON": b"not JSON at all",
    "NUL bytes": b"\0\0\0\0",
    "a NUL in a text": b'{"a": "\0"}',
    "no UTF-8": b'{"a": "\xff\xfe"}',
    "nested too deeply": b"[" * 200_000,
    "nested too deeply in objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
}
ODD_ROWS = {
    "null": b"null",
    "a number": b"12",
    "a large number": b"1" + b"0" * 400,
    "a text": b'"a"',
    "a truth": b"true",
    "an empty list": b"[]",
    "an empty object": b"{}",
    "a list of lists": b"[[[]]]",
    "a list of nothing": b"[null, null]",
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES)
@pytest.mark.parametrize("form", FORMS)
def test_an_invalid_line_is_a_problem_and_unaffected_records_are_read(tmp_path, form, line):
    records = read(tmp_path, form, surround_row(form, line))
    num_readable = NUM_READABLE.get(form, 4)
    assert len(problems(records)) == (3 if form == "steps" else 1)
    assert observations(records)[:num_readable] == [malformed.SEEN] * num_readable


@pytest.mark.parametrize("row", ODD_ROWS.values(), ids=ODD_ROWS)
@pytest.mark.parametrize("form", FORMS)
def test_a_row_of_another_type_is_counted(tmp_path, form, row):
    records = read(tmp_path, form, surround_row(form, row))
    num_readable = NUM_READABLE.get(form, 4)
    assert observations(records)[:num_readable] == [malformed.SEEN] * num_readable
    empty_records = [record for record in records if record.problem or not record.trajectory.turns]
    notes = [record.notes for record in records if record.notes]
    assert empty_records or notes


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.97])
@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_ends_too_early_is_a_problem(tmp_path, form, share):
    data = malformed.lines_of(form)
    last_start = data.rstrip().rfind(b"\n") + 1
    length = last_start + max(1, int(share * (len(data) - last_start - 2)))
    for name in ("log.jsonl", "log.json"):
        assert problems(read(tmp_path, form, data[:length], name))


@pytest.mark.parametrize("form", FORMS)
def test_a_duplicate_record_is_read_twice_or_counted_as_a_copy(tmp_path, form):
    records = read(tmp_path, form, malformed.lines_of(form) * 2)
    copies = [note for record in records for note in record.notes if "cop" in note]
    assert not problems(records)
    assert len(observations(records)) == 2 or copies


@pytest.mark.parametrize("character", ["\\u0000", "\\ud800", "\\uffff", "\\u202e"])
@pytest.mark.parametrize("form", FORMS)
def test_an_odd_character_is_kept_or_its_record_is_a_problem(tmp_path, form, character):
    records = read(tmp_path, form, malformed.lines_of(form, character))
    if not problems(records):
        (text,) = observations(records)
        assert text.strip('"') in [character.encode().decode("unicode_escape"), character]


@pytest.mark.parametrize("form", FORMS)
def test_a_deeply_nested_value_is_read_or_is_a_problem(tmp_path, form):
    for depth in (200, 2_000):
        value = "[" * depth + "]" * depth
        data = malformed.lines_of(form).replace(b'"SEEN"', value.encode())
        assert logs.none_is_lost(read(tmp_path, form, data))


@pytest.mark.compute
@pytest.mark.parametrize("form", FORMS)
def test_an_observation_of_50_megabytes_is_whole_or_a_problem(tmp_path, form):
    text = "x" * 50_000_000
    records = read(tmp_path, form, malformed.lines_of(form, text))
    assert problems(records) or observations(records) == [text]
    (tmp_path / "log.jsonl").unlink()
