import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings

from agentworld.data.importers.base import form_of
from agentworld.records.trajectory import Span
from agentworld.storage.source import files_of
from make import logs

MISSING_ID, TEXT_ID = "0" * 32, "1" * 32
TOOL = {"name": "bash", "description": f"attachment://{TEXT_ID}", "parameters": {"type": "object"}}

MODEL = {"event": "model", "input": [], "input_refs": [[0, 1]], "tools": [TOOL]}


def call(call_id, **arguments):
    return {"id": call_id, "function": "bash", "arguments": arguments, "type": "function"}


def assistant(*calls):
    return {"role": "assistant", "content": "", "tool_calls": list(calls)}


def result(call_id, text, **fields):
    return {"role": "tool", "content": text, "tool_call_id": call_id, "function": "bash"} | fields


def tool_event(call_id, text, **fields):
    times = {"timestamp": "2026-01-01T00:00:00Z", "completed": "2026-01-01T00:00:01Z"}
    event = {"event": "tool", "id": call_id, "function": "bash", "arguments": {"cmd": "ls"}}
    return event | {"result": text} | times | fields


def sample(messages=(), events=(), **fields):
    return {
        "id": "a",
        "epoch": 1,
        "input": "List it.",
        "target": "the solution",
        "messages": [{"role": "user", "content": "List it."}, *messages],
        "events": [MODEL, *events],
        "attachments": {TEXT_ID: "It runs a command."},
        "scores": {"exact": {"value": "the score"}},
        "metadata": {"hint": "the hint"},
    } | fields


def log(*samples, **fields):
    spec = {"task": "listing", "task_id": "unlike any other", "model": "openai/gpt-4o"}
    return {"version": 2, "status": "success", "eval": spec, "samples": list(samples)} | fields


SAMPLE = sample([assistant(call("1", cmd="ls")), result("1", "a\nb")], [tool_event("1", "a\nb")])


def read_log(folder, value, **options):
    return logs.read("inspect", folder, value, name="log.json", **options)


def trajectory(folder, value, **options):
    (record,) = read_log(folder, log(value), **options)
    assert record.problem == ""
    return record.trajectory


def test_a_sample_is_an_episode_of_its_task(tmp_path):
    (record,) = read_log(tmp_path, log(SAMPLE))
    assert record.place == "samples[0]"
    assert record.trajectory.task_id == "listing/a"
    assert record.trajectory.source == "openai/gpt-4o"
    assert [tool.description for tool in record.trajectory.tools] == ["It runs a command."]
    (turn,) = record.trajectory.turns
    assert json.loads(turn.action) == {"name": "bash", "arguments": {"cmd": "ls"}}
    assert turn.observation == "a\nb"
    assert turn.time == "2026-01-01T00:00:01Z"
    assert record.notes == {"message of the user": 1}


def test_target_scores_and_metadata_are_not_imported(tmp_path):
    text = trajectory(tmp_path, SAMPLE, start="user").model_dump_json()
    assert not any(secret in text for secret in ("the solution", "the score", "the hint"))
    assert "List it." in text


def test_epochs_of_a_sample_with_a_large_id_share_one_task(tmp_path):
    sample_id = 2**63 + 1
    records = read_log(tmp_path, log(sample(id=sample_id), sample(id=sample_id, epoch=2)))
    assert [record.trajectory.task_id for record in records] == [f"listing/{sample_id}"] * 2


def test_a_sample_without_calls_has_no_turns(tmp_path):
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}
    (record,) = read_log(tmp_path, log(sample([answer]), status="cancelled"))
    assert record.trajectory.turns == ()
    assert record.notes["what the agent wrote beside its calls"] == 1


def test_a_log_without_samples_has_no_episodes(tmp_path):
    assert read_log(tmp_path, log(samples=None)) == []


def test_attachment_references_are_replaced_by_their_text(tmp_path):
    reference = f"attachment://{TEXT_ID}"
    value = sample([assistant(call("1", cmd=reference)), result("1", reference)])
    (turn,) = trajectory(tmp_path, value).turns
    assert json.loads(turn.action)["arguments"] == {"cmd": "It runs a command."}
    assert turn.observation == "It runs a command."


def test_a_missing_attachment_is_a_problem_of_its_sample_only(tmp_path):
    bad_sample = sample([result("1", f"attachment://{MISSING_ID}")])
    problems = [record.problem for record in read_log(tmp_path, log(SAMPLE, bad_sample, SAMPLE))]
    assert problems == ["", f"attachments has no {MISSING_ID}; export the log again", ""]


def test_images_are_omitted_from_the_text_and_counted(tmp_path):
    parts = [{"type": "text", "text": "seen"}, {"type": "image", "image": "data:image/png;base64,"}]
    (record,) = read_log(tmp_path, log(sample([assistant(call("1")), result("1", parts)])))
    assert record.trajectory.turns[0].observation == "seen"
    assert record.notes["part: image"] == 1


def test_a_tool_error_is_the_observation(tmp_path):
    error = {"type": "file_not_found", "message": "File 'a' was not found."}
    value = sample([assistant(call("1")), result("1", "", error=error)])
    (turn,) = trajectory(tmp_path, value).turns
    assert (turn.observation, turn.spans) == ("File 'a' was not found.", ())


def test_an_error_that_prevented_the_call_is_marked_as_a_harness_error(tmp_path):
    error = {"type": "approval", "message": "Refused."}
    value = sample([assistant(call("1")), result("1", "", error=error)])
    (turn,) = trajectory(tmp_path, value).turns
    assert turn.spans == (Span(start=0, end=8, what="error of the harness"),)


def test_a_result_truncated_by_inspect_is_cut_and_its_frame_is_marked(tmp_path):
    head = (
        "\nThe output of your call to bash was too long to be displayed.\n"
        "Here is a truncated version:\n<START_TOOL_OUTPUT>\n"
    )
    text = f"{head}a\nb\n<END_TOOL_OUTPUT>\n"
    value = sample([assistant(call("1")), result("1", text)])
    (turn,) = trajectory(tmp_path, value).turns
    assert turn.is_cut
    assert turn.observation == text
    first_span, last_span = turn.spans
    assert turn.observation[first_span.end : last_span.start] == "a\nb"


def test_a_result_is_cut_if_its_event_is_truncated(tmp_path):
    events = [tool_event("1", "a", truncated=[20_000, 1])]
    value = sample([assistant(call("1")), result("1", "a")], events)
    assert trajectory(tmp_path, value).turns[0].is_cut


def test_results_of_two_calls_with_one_id_have_the_times_of_their_events(tmp_path):
    exchange = [assistant(call("1")), result("1", "a")]
    events = [tool_event("1", "a", completed="early"), tool_event("1", "a", completed="late")]
    turns = trajectory(tmp_path, sample([*exchange, *exchange], events)).turns
    assert [turn.time for turn in turns] == ["early", "late"]


def test_calls_only_in_events_are_counted_or_read_with_the_events_option(tmp_path):
    value = copy.deepcopy(SAMPLE)
    value["events"].append(tool_event("2", {"type": "text", "text": "of a sub-agent"}))
    value["events"].append(tool_event("3", True))
    value["events"].append(tool_event("4", "", pending=True))
    (record,) = read_log(tmp_path, log(value))
    assert len(record.trajectory.turns) == 1
    assert record.notes["tool event that no message repeats"] == 3
    value["messages"].append({"role": "user", "content": "Thanks."})
    (record,) = read_log(tmp_path, log(value), calls="events", start="user")
    observations = [turn.observation for turn in record.trajectory.turns]
    assert observations == ["a\nb", "of a sub-agent", "True"]
    assert record.trajectory.initial_state == "List it."
    assert record.notes == {"call without a result": 1, "message of the user": 1}


def test_errors_and_retries_of_a_sample_are_counted(tmp_path):
    value = sample(error={"message": "it broke"}, error_retries=[{"message": "before"}])
    (record,) = read_log(tmp_path, log(value))
    assert record.notes["error that ended the sample"] == 1
    assert record.notes["attempt that was begun anew"] == 1


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (log(sample(id=None)), "id."),
        (log(sample(id="\ud800")), "a text in it is no Unicode"),
        (log(sample() | {"messages": 3}), "messages: "),
        (log(sample([{"content": "a"}])), "messages.1.role: Field required"),
        (log(sample(events=[{"event": "tool"}])), "events.1.id: Field required"),
        (log(sample(attachments={"a": 3})), "attachments.a: "),
        (log("no sample"), "the whole: "),
        (log(samples="none"), "samples: "),
        ({"eval": {}}, "eval.task: Field required"),
        ([3], "the whole: "),
    ],
)
def test_a_damaged_record_is_a_problem_that_names_the_field(tmp_path, value, problem):
    (record,) = read_log(tmp_path, value)
    assert record.trajectory is None
    assert problem in record.problem


def test_deep_nesting_is_a_problem_and_raises_no_exception(tmp_path):
    value = sample([assistant(call("1"))], [tool_event("1", "DEEP")])
    text = json.dumps(log(value)).replace('"DEEP"', "[" * 900 + "]" * 900)
    (record,) = read_log(tmp_path, text)
    assert "nest" in record.problem or "ecursi" in record.problem


def test_a_log_is_detected_by_its_content_and_an_eval_file_by_its_name(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(log(SAMPLE)))
    assert form_of(files_of(str(path))) == "inspect"
    path = tmp_path / "b.eval"
    path.write_bytes(b"PK")
    assert form_of(files_of(str(path))) == "inspect"


def test_a_file_can_contain_one_log_per_line(tmp_path):
    records = logs.read("inspect", tmp_path, log(SAMPLE), log(SAMPLE))
    assert [record.place for record in records] == ["line 1, samples[0]", "line 2, samples[0]"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=logs.damaged(log(SAMPLE, SAMPLE)))
@pytest.mark.parametrize("calls", ["messages", "events"])
def test_a_record_that_is_changed_anywhere_is_an_episode_or_a_problem(tmp_path, value, calls):
    for record in read_log(tmp_path, value, calls=calls):
        assert (record.trajectory is None) == bool(record.problem)
        assert record.problem or record.trajectory.model_dump_json()
