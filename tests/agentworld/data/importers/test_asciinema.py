import json

import pytest
from hypothesis import HealthCheck, given, settings

from agentworld.data.importers.base import form_of
from agentworld.storage.source import files_of
from make import logs

FORM = "asciinema"
HEADER = {"version": 2, "width": 80, "height": 24, "timestamp": 1_700_000_000, "title": "task"}
CAST = [
    HEADER,
    [0.1, "o", "$ "],
    [1.0, "i", "l"],
    [1.1, "o", "l"],
    [1.2, "i", "s\r"],
    [1.3, "o", "s\r\n"],
    [1.4, "o", "a.py\r\n$ "],
    [2.0, "r", "90x30"],
    [3.0, "i", "sleep 9\n"],
    [3.1, "o", "sleep 9\r\n"],
    [4.0, "i", "\x03"],
    [4.1, "o", "^C\r\n$ "],
    [5.0, "i", "half"],
]
TURNS = [("ls", "ls\r\na.py\r\n$ "), ("sleep 9", "sleep 9\r\n"), ("\x03", "^C\r\n$ ")]


def read(folder, *rows, typed_by="agent"):
    return logs.read(FORM, folder, *rows, name="log.cast", typed_by=typed_by)


def test_a_typed_line_is_an_action_and_the_output_before_the_next_its_observation(tmp_path):
    (record,) = read(tmp_path, *CAST)
    assert logs.turns(record) == TURNS
    assert record.trajectory.initial_state == "$ "
    assert record.trajectory.task_id == "task"
    assert record.trajectory.turns[0].time == "1700000001.4"
    assert record.notes == {"event: r": 1, "input without a line's end": 1}


def test_version_3_times_are_relative_to_the_previous_event(tmp_path):
    header = {"version": 3, "term": {"cols": 80, "rows": 24}}
    (record,) = read(tmp_path, header, [0.5, "i", "ls\r"], [0.5, "o", "a"], [0.25, "x", "0"])
    assert logs.turns(record) == [("ls", "a")]
    assert record.trajectory.turns[0].time == "1.0"


def test_a_recording_without_typed_by_agent_is_refused(tmp_path):
    (record,) = read(tmp_path, *CAST, typed_by="")
    assert "typed_by=agent" in record.problem


def test_a_recording_without_input_events_is_refused(tmp_path):
    (record,) = read(tmp_path, *(row for row in CAST if "i" not in row))
    assert record.problem.startswith("it has no 'i' event")


def test_a_recording_of_version_1_is_refused(tmp_path):
    (record,) = read(tmp_path, {"version": 1, "width": 80, "height": 24, "stdout": []})
    assert record.problem.startswith("version: ")


def test_the_header_identifies_the_format_and_each_header_begins_an_episode(tmp_path):
    records = read(tmp_path, *CAST, *CAST)
    assert [logs.turns(record) for record in records] == [TURNS, TURNS]
    assert form_of(files_of(str(tmp_path / "log.cast"))) == FORM


@pytest.mark.parametrize("event", [[1, "o"], ["1", "o", "x"], [1, 2, 3], 7, [1e300, "o", "x"]])
def test_a_malformed_event_is_a_problem_of_its_recording_only(tmp_path, event):
    bad_record, good_record = read(tmp_path, *CAST, event, *CAST)
    assert "the event is not [time, code, text]; correct it (got " in bad_record.problem
    assert logs.turns(good_record) == TURNS


def test_a_row_before_the_first_header_is_a_problem(tmp_path):
    bad_record, good_record = read(tmp_path, 7, *CAST)
    assert "no header comes before it" in bad_record.problem
    assert logs.turns(good_record) == TURNS


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=logs.damaged(CAST))
def test_damaged_input_is_read_as_episodes_or_problems(tmp_path, rows):
    rows = rows if isinstance(rows, list) and rows else [rows]
    assert logs.none_is_lost(read(tmp_path, *map(json.dumps, rows)))
