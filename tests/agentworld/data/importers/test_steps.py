"""Tables and lists of steps: special cases of real logs, as records written for these tests."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import ValidationError

from agentworld.data.importers.base import importer_of
from make import logs

FORM = "steps"
END = [-1, "none"]
OPTIONS = {"action": "do", "observation": "see", "alignment": "same row"}
APP_OPTIONS = {
    "steps": "*.*.path",
    "action": "label",
    "observation": "screen",
    "alignment": "next state",
    "end": END,
}


def screen(label, content):
    return {"label": label, "screen": content, "history": "so far"}


APPS = {
    "notes": {
        "a1": {"goal": "write", "path": [screen([2, "none"], "<b id=2>"), screen(END, "<i id=1>")]},
        "b.2": {"goal": "read", "path": [screen(END, "<b id=2>")]},
    },
    "clock": {
        "c3": {
            "goal": "write",
            "path": [screen([1, "é"], "1"), screen([1, "x"], "1"), screen(END, "")],
        },
    },
}


def read(folder, *rows, name="log.jsonl", **options):
    return logs.read(FORM, folder, *rows, name=name, **OPTIONS | options)


def read_one(folder, *rows, name="log.jsonl", **options):
    return logs.one(FORM, folder, *rows, name=name, **OPTIONS | options)


def step(action, observation, **fields):
    return {"do": action, "see": observation, **fields}


def test_each_key_is_an_episode_and_the_next_state_is_the_observation(tmp_path):
    records = logs.read(FORM, tmp_path, json.dumps(APPS, indent=1), name="apps.json", **APP_OPTIONS)
    assert [logs.turns(record) for record in records] == [
        [('[2, "none"]', "<i id=1>")],
        [],
        [('[1, "é"]', "1"), ('[1, "x"]', "")],
    ]
    episodes = [record.trajectory for record in records]
    assert [episode.initial_state for episode in episodes] == ["<b id=2>", "<b id=2>", "1"]
    assert [episode.task_id for episode in episodes] == ["notes/a1", "notes/b.2", "clock/c3"]
    assert [record.place for record in records] == ["notes/a1", "notes/b.2", "clock/c3"]
    assert [record.notes for record in records] == [{"end of the episode": 1}] * 3
    assert records[0].events[0].place == "notes.a1.path[0]"


def test_stars_in_task_and_start_paths_match_the_episode_key(tmp_path):
    records = logs.read(FORM, tmp_path, APPS, task="*.*.goal", start="*.*.goal", **APP_OPTIONS)
    episodes = [record.trajectory for record in records]
    assert [episode.task_id for episode in episodes] == ["write", "read", "write"]
    assert episodes[1].initial_state == "read\n\n<b id=2>"


def test_a_damaged_episode_is_a_problem_and_the_others_are_read(tmp_path):
    apps = APPS | {"bad": {"x": {"path": 3}, "y": {}, "z": None}, "worse": 7, "empty": {}}
    records = logs.read(FORM, tmp_path, apps, **APP_OPTIONS)
    assert [record.problem for record in records] == [
        "",
        "",
        "",
        "bad.x.path is a int and no list; name another path",
        "there is no bad.y.path; name another path",
        "there is no bad.z.path; name another path",
        "there is no worse.*.path; name another path",
    ]


def test_a_row_without_any_episode_has_a_problem(tmp_path):
    (record,) = logs.read(FORM, tmp_path, {}, **APP_OPTIONS)
    assert record.problem == "there is no *.*.path; name another path"


def test_an_action_and_its_observation_can_be_in_one_step(tmp_path):
    row = {"run": {"steps": [step("a", "1"), step("b", {"n": 2**70}), step("", "")]}}
    record = read_one(tmp_path, row | {"task_id": 7, "model": "m-1"}, steps="run.steps")
    assert logs.turns(record) == [("a", "1"), ("b", f'{{"n": {2**70}}}'), ("", "")]
    assert (record.trajectory.task_id, record.trajectory.source) == ("7", "m-1")
    assert record.trajectory.initial_state == ""


def test_an_observation_can_be_in_the_next_step(tmp_path):
    row = {"s": [step("a", "0"), step("b", "1"), step("c", "2")]}
    record = read_one(tmp_path, row, steps="s", alignment="next row")
    assert record.trajectory.initial_state == "0"
    assert logs.turns(record) == [("a", "1"), ("b", "2")]
    assert record.notes == {"call without a result": 1}


@pytest.mark.parametrize("alignment", ["same row", "next row"])
def test_a_missing_value_in_a_step_shifts_no_other_step(tmp_path, alignment):
    steps = [step("a", None), step("b", "1"), step(None, "2"), step("c", "3"), {"do": "d"}]
    record = read_one(tmp_path, {"s": steps}, steps="s", alignment=alignment)
    turns = {"same row": [("b", "1"), ("c", "3")], "next row": [("a", "1"), ("b", "2")]}
    assert logs.turns(record) == turns[alignment]
    assert record.notes == {"call without a result": 2, "result without a call": 1}


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([step("a", "0"), step("b", "1")], r"s\[1\] is the last step and has an action"),
        ([step(None, "0"), step(None, "1")], r"s\[0\] has no action"),
        ([step("a", "0"), {"do": None}], r"s\[1\] has no observation"),
    ],
)
def test_steps_that_do_not_fit_the_next_state_alignment_are_a_problem(tmp_path, steps, problem):
    (record,) = read(tmp_path, {"s": steps}, steps="s", alignment="next state")
    assert record.problem.startswith(problem.replace("\\", ""))
    assert record.problem.endswith("name another alignment")


def test_an_action_can_be_a_tool_call_with_arguments(tmp_path):
    steps = [
        step("f", "1", args={"b": 1, "a": 2}),
        step("f", "2", args='{"a": 2}'),
        step("g", "3"),
        step("f", "4", args="{cut"),
    ]
    record = read_one(tmp_path, {"s": steps}, steps="s", arguments="args")
    assert [action for action, _ in logs.turns(record)] == [
        '{"name":"f","arguments":{"a":2,"b":1}}',
        '{"name":"f","arguments":{"a":2}}',
        '{"name":"g","arguments":{}}',
        '{"name": "f", "arguments": "{cut"}',
    ]
    (bad_record,) = read(tmp_path, {"s": [step(3, "1", args={})]}, steps="s", arguments="args")
    assert bad_record.problem == "name: Input should be a valid string (got '3')"


def test_parallel_lists_of_actions_and_observations_are_steps(tmp_path):
    row = {"x": {"do": ["a", "b"]}, "see": ["1", "2"], "args": [{"n": 1}, None], "t": [5, "6"]}
    options = {"action": "x.do", "arguments": "args", "time": "t"}
    record = read_one(tmp_path, row, **options)
    assert logs.turns(record) == [
        ('{"name":"a","arguments":{"n":1}}', "1"),
        ('{"name":"b","arguments":{}}', "2"),
    ]
    assert [turn.time for turn in record.trajectory.turns] == ["5", "6"]


def test_lists_of_different_lengths_require_the_next_state_alignment(tmp_path):
    row = {"do": ["a", "b"], "see": ["0", "1", "2"]}
    for alignment in ("same row", "next row"):
        (record,) = read(tmp_path, row, alignment=alignment)
        assert record.problem == (
            f"see: 3 values and 2 actions do not align by `{alignment}`, which wants 2"
        )
    assert logs.turns(read_one(tmp_path, row, alignment="next state")) == [("a", "1"), ("b", "2")]
    (record,) = read(tmp_path, {"do": ["a"], "see": ["0"]}, alignment="next state")
    assert "see: 1 values and 1 actions" in record.problem


def test_consecutive_rows_with_one_episode_id_are_one_episode(tmp_path):
    rows = [step("a", "1", id=1), step("b", "2", id=1), step("c", "3", id="x", task_id="t")]
    first, second = read(tmp_path, *rows, episode="id", start="do")
    assert logs.turns(first) == [("a", "1"), ("b", "2")]
    assert (first.place, first.trajectory.task_id) == ("line 1", "1")
    assert first.trajectory.initial_state == "a"
    assert [event.place for event in first.events][1:] == ["line 1", "line 1", "line 2", "line 2"]
    assert second.trajectory.task_id == "t"


def test_separated_rows_of_one_episode_are_a_problem(tmp_path):
    rows = [step("a", "1", id=1), step("b", "2", id=2), step("c", "3", id=1)]
    problems = [record.problem for record in read(tmp_path, *rows, episode="id")]
    assert problems == ["", "", "id: rows of '1' stand apart; sort the table by id"]


def test_an_unreadable_row_makes_the_adjacent_episodes_problems(tmp_path):
    rows = [
        step("a", "1", id=1),
        step("b", "2", id=2),
        "{cut",
        step("c", "3", id=2),
        step("d", "4", id=3),
        step("e", "5"),
        step("f", "6", id=4),
        step("g", "7", id=5),
    ]
    records = {record.place: record.problem for record in read(tmp_path, *rows, episode="id")}
    message = "a step of it may be missing, for line {} cannot be read"
    assert records == {
        "line 1": "",
        "line 2": message.format(3),
        "line 3": records["line 3"],
        "line 5": message.format(6),
        "line 6": "there is no id; name another path",
        "line 7": message.format(6),
        "line 8": "",
    }
    assert records["line 3"].startswith("it is not JSON")


def test_a_path_missing_in_every_step_is_a_problem(tmp_path):
    for name in ("action", "observation"):
        (record,) = read(tmp_path, {"s": [step("a", "1")] * 2}, steps="s", **{name: "x.y"})
        assert record.problem == "there is no x.y; name another path"


def test_observations_are_unwrapped_cut_and_marked(tmp_path):
    text = "[TextContent(type='text', text='1\\nleft: 3', annotations=None)]"
    options = {"unwrap": "textcontent", "cut_at": len(text), "harness_lines": [r"left: \d"]}
    record = read_one(tmp_path, {"s": [step("a", text)]}, steps="s", **options)
    (turn,) = record.trajectory.turns
    assert (turn.observation, turn.is_cut, len(turn.spans)) == ("1\nleft: 3", True, 1)


def test_an_episode_without_steps_has_no_turns(tmp_path):
    assert logs.turns(read_one(tmp_path, {"s": []}, steps="s")) == []
    assert logs.turns(read_one(tmp_path, {"do": [], "see": []})) == []


def test_missing_alignment_and_two_groupings_are_refused():
    with pytest.raises(ValidationError, match="alignment"):
        importer_of(FORM).options(action="a", observation="b")
    with pytest.raises(ValidationError, match="two ways to group"):
        importer_of(FORM).options(**OPTIONS, steps="s", episode="id")


def test_no_record_is_claimed():
    assert not importer_of(FORM).claims({"steps": [step("a", "1")]})


@pytest.mark.parametrize("alignment", ["same row", "next row", "next state"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(apps=logs.damaged(APPS))
def test_a_damaged_document_is_episodes_or_problems(tmp_path, alignment, apps):
    options = APP_OPTIONS | {"alignment": alignment, "task": "*.*.goal"}
    assert logs.none_is_lost(logs.read(FORM, tmp_path, apps, **options))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(row=logs.damaged({"do": ["a", "b"], "see": ["1", "2"], "args": [{}, {"x": 1}], "t": [1, 2]}))
def test_damaged_lists_are_an_episode_or_a_problem(tmp_path, row):
    assert logs.none_is_lost(read(tmp_path, row, arguments="args", time="t", start="t.0"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(row=logs.damaged(step("a", "1", id=1, args="{}")))
def test_damaged_rows_are_episodes_or_problems(tmp_path, row):
    good_row = step("a", "1", id=0)
    records = read(tmp_path, good_row, row, good_row | {"id": 2}, episode="id", arguments="args")
    assert logs.none_is_lost(records)
