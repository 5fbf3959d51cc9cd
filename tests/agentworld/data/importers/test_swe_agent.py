import json

import pytest
from hypothesis import HealthCheck, given, settings

from agentworld.data.importers.base import form_of, importer_of
from agentworld.storage.source import files_of
from make import logs

FORM = "swe_agent"


def step(action, observation, thought="", **fields):
    return {
        "action": action,
        "observation": observation,
        "response": f"{thought}\n```\n{action}\n```",
        "thought": thought,
        "state": {"working_dir": "/repo", "open_file": "n/a"},
        "execution_time": 0.1,
        **fields,
    }


def trajectory(*steps, **fields):
    return {
        "environment": "main",
        "trajectory": list(steps),
        "history": [{"role": "system", "content": "You are."}],
        "info": {"exit_status": "submitted", "submission": "secret"},
        "replay_config": json.dumps(
            {"agent": {"model": {"name": "m-1"}}, "problem_statement": {"id": "repo__1"}}
        ),
        **fields,
    }


TRAJECTORY = trajectory(step("ls -F\n", "a.py\n", "I look."), step("submit", ""))


def test_each_step_is_a_turn(tmp_path):
    record = logs.one(FORM, tmp_path, json.dumps(TRAJECTORY, indent=2), name="x.traj")
    assert logs.turns(record) == [("ls -F\n", "a.py\n"), ("submit", "")]
    assert (record.trajectory.source, record.trajectory.task_id) == ("m-1", "repo__1")
    assert record.events[1].place == "trajectory[0].action"
    assert record.notes == {"what the agent wrote beside its calls": 1}


@pytest.mark.parametrize("config", [None, "no JSON", 7, {"agent": "x"}, "[" * 100_000])
def test_without_a_valid_replay_config_the_task_is_the_file_name(tmp_path, config):
    value = TRAJECTORY | {"replay_config": config}
    record = logs.one(FORM, tmp_path, value, name="repo__2.traj")
    assert (record.trajectory.task_id, record.trajectory.source) == ("repo__2", "swe_agent")
    assert logs.one(FORM, tmp_path, value, name="many.jsonl").trajectory.task_id == ""


def test_a_step_without_an_action_is_left_out(tmp_path):
    record = logs.one(
        FORM, tmp_path, trajectory(step("", "Your output has no action"), step(None, None))
    )
    assert record.trajectory.turns == ()
    assert record.notes == {"step without an action": 2}


def test_a_step_without_an_observation_is_a_call_without_a_result(tmp_path):
    record = logs.one(FORM, tmp_path, trajectory(step("ls", None)))
    assert record.notes == {"call without a result": 1}


@pytest.mark.parametrize(
    ("observation", "label"),
    [
        ("a\n<response clipped><NOTE>Only a part is shown.</NOTE>", "cut"),
        ("EXECUTION TIMED OUT BECAUSE IT WAITED 30 SECONDS", "harness"),
        ("It was cancelled because it took more than 9 seconds. Please try another.", "harness"),
    ],
)
def test_harness_text_in_an_observation_is_marked(tmp_path, observation, label):
    (turn,) = logs.one(FORM, tmp_path, trajectory(step("ls", observation))).trajectory.turns
    assert [span.what for span in turn.spans] == [label]
    assert turn.is_cut == (label == "cut")
    assert turn.observation == observation


def test_the_submission_appears_in_no_event(tmp_path):
    record = logs.one(FORM, tmp_path, TRAJECTORY)
    assert not any("secret" in event.text for event in record.events)


def test_options_name_the_step_list_and_the_task(tmp_path):
    value = {"log": {"steps": [step("ls", "a.py")]}, "case": 7}
    record = logs.one(FORM, tmp_path, value, steps="log.steps", task="case", source="mine")
    assert logs.turns(record) == [("ls", "a.py")]
    assert (record.trajectory.task_id, record.trajectory.source) == ("7", "mine")


def test_swe_agent_files_are_detected_as_the_swe_agent_format(tmp_path):
    (tmp_path / "x.traj").write_text(json.dumps(TRAJECTORY, indent=2))
    (tmp_path / "x.patch").write_text("--- a\n+++ b\n")
    (file,) = files_of(str(tmp_path))
    assert form_of([file]) == FORM


@pytest.mark.parametrize(
    "value",
    [
        {"trajectory": [{"action": "ls", "observation": "a"}], "info": {}},
        {"trajectory": [step("ls", "a")]},
        {"trajectory": [], "info": {}},
        {"trajectory": [7], "info": {}},
        [step("ls", "a")],
        None,
    ],
)
def test_other_rows_are_not_claimed(value):
    assert not importer_of(FORM).claims(value)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (trajectory(step(7, "x")), "trajectory[0].action: "),
        (trajectory(step("ls", ["x"])), "trajectory[0].observation: "),
        (trajectory("x"), "trajectory[0]: "),
        ({"trajectory": {}}, "it has no list of steps"),
        (7, "it has no list of steps"),
    ],
)
def test_a_damaged_record_reports_the_field_and_the_next_record_is_read(tmp_path, value, problem):
    bad_record, good_record = logs.read(FORM, tmp_path, value, TRAJECTORY)
    assert bad_record.problem.startswith(problem)
    assert len(good_record.trajectory.turns) == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=logs.damaged(TRAJECTORY))
def test_damaged_input_is_read_as_episodes_or_problems(tmp_path, value):
    assert logs.none_is_lost(logs.read(FORM, tmp_path, value))
    importer_of(FORM).claims(value)
