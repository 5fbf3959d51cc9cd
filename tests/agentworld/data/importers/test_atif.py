import json

import pytest
from hypothesis import HealthCheck, given, settings

from agentworld.data.importers.base import form_of, importer_of
from agentworld.storage.source import files_of
from make import logs

TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}


def call(call_id="1", **arguments):
    return {"tool_call_id": call_id, "function_name": "bash", "arguments": arguments}


def result(content, call_id=None, **fields):
    return {"source_call_id": call_id, "content": content, **fields}


def step(*calls, results=(), source="agent", message="", **fields):
    value = {"step_id": 1, "source": source, "message": message, **fields}
    if calls:
        value["tool_calls"] = list(calls)
    if results:
        value["observation"] = {"results": list(results)}
    return value


def document(*steps, version="ATIF-v1.7", tools=(TOOL,), **fields):
    agent = {"name": "a", "version": "1", "model_name": "m", "tool_definitions": list(tools)}
    return {"schema_version": version, "agent": agent, "steps": list(steps), **fields}


EPISODE = document(
    step(source="system", message="You are in a shell."),
    step(source="user", message="List it."),
    step(
        call(cmd="ls"),
        results=[result("a\nb", "1")],
        message="I look.",
        reasoning_content="What is there?",
        timestamp="2026-01-01T00:00:00Z",
    ),
)


def read_one(folder, value, **options):
    return logs.one("atif", folder, value, name="trajectory.json", **options)


def turns(record):
    return [
        ([json.loads(line)["arguments"] for line in action.splitlines()], observation)
        for action, observation in logs.turns(record)
    ]


@pytest.mark.parametrize("version", ["ATIF-v1.5", "ATIF-v1.6", "ATIF-v1.7", "ATIF-v1.8"])
def test_a_step_with_a_call_is_a_turn(tmp_path, version):
    record = read_one(tmp_path, EPISODE | {"schema_version": version})
    assert record.trajectory.source == "m"
    assert [tool.name for tool in record.trajectory.tools] == ["bash"]
    (turn,) = record.trajectory.turns
    assert json.loads(turn.action) == {"name": "bash", "arguments": {"cmd": "ls"}}
    assert (turn.observation, turn.time) == ("a\nb", "2026-01-01T00:00:00Z")
    assert record.notes == {
        "message of the system": 1,
        "message of the user": 1,
        "what the agent thought": 1,
        "what the agent wrote beside its calls": 1,
    }


def test_the_first_user_message_can_be_the_initial_state(tmp_path):
    value = document(*EPISODE["steps"], step(source="user", message="Thanks."))
    record = read_one(tmp_path, value, start="user")
    assert record.trajectory.initial_state == "List it."
    assert record.notes["message of the user"] == 1


@pytest.mark.parametrize("version", ["ATIF-v1.4", "ATIF-v1.9", "ATIF-v2.5", "1.7", ""])
def test_an_unsupported_version_is_refused_and_named(tmp_path, version):
    (record,) = logs.read("atif", tmp_path, EPISODE | {"schema_version": version})
    assert record.problem.startswith("schema_version: ")
    assert "is not a version from ATIF-v1.5 to ATIF-v1.8; convert" in record.problem
    assert repr(version) in record.problem


def test_copied_context_is_no_part_of_the_episode(tmp_path):
    copied_step = step(call(cmd="old"), results=[result("old", "1")], is_copied_context=True)
    record = read_one(tmp_path, document(copied_step, EPISODE["steps"][2]))
    assert turns(record) == [([{"cmd": "ls"}], "a\nb")]
    assert record.notes["copied context"] == 1


def test_results_without_an_id_are_paired_in_their_order(tmp_path):
    exchange = step(call("1", n=1), call("2", n=2), results=[result("one"), result("two")])
    record = read_one(tmp_path, document(exchange))
    assert turns(record) == [([{"n": 1}], "one"), ([{"n": 2}], "two")]


def test_results_are_paired_by_their_ids_in_any_order(tmp_path):
    exchange = step(
        call("1", n=1), call("2", n=2), results=[result("two", "2"), result("one", "1")]
    )
    record = read_one(tmp_path, document(exchange))
    assert turns(record) == [([{"n": 1}], "one"), ([{"n": 2}], "two")]


def test_calls_that_share_one_result_are_one_action(tmp_path):
    exchange = step(
        call("1", n=1), call("2", n=2), call("3", n=3), results=[result("both"), result("one", "1")]
    )
    record = read_one(tmp_path, document(exchange))
    assert turns(record) == [([{"n": 1}], "one"), ([{"n": 2}, {"n": 3}], "both")]


def test_a_step_whose_message_is_the_action_is_a_turn(tmp_path):
    exchange = step(results=[result("a")], message="<run>ls</run>")
    assert logs.turns(read_one(tmp_path, document(exchange))) == [("<run>ls</run>", "a")]


def test_an_empty_result_is_an_observation_and_a_null_result_is_not(tmp_path):
    exchange = step(call("1"), call("2"), results=[result("", "1"), result(None, "2")])
    record = read_one(tmp_path, document(exchange))
    assert turns(record) == [([{}], "")]
    assert record.notes == {"result without content": 1, "call without a result": 1}


def test_a_message_without_a_result_is_no_action(tmp_path):
    record = read_one(tmp_path, document(step(results=[result(None)], message="I am done.")))
    assert record.notes == {
        "what the agent wrote beside its calls": 1,
        "result without content": 1,
    }


def test_a_result_of_a_system_step_is_no_observation(tmp_path):
    system_step = step(source="system", message="Compacted.", results=[result("freed")])
    record = read_one(tmp_path, document(step(call()), system_step))
    assert turns(record) == []
    assert record.notes == {
        "call without a result": 1,
        "message of the system": 1,
        "result of a step of the system": 1,
    }


def test_non_text_parts_are_omitted_and_counted(tmp_path):
    parts = [{"type": "text", "text": "seen"}, {"type": "image", "source": {"path": "a.png"}}]
    record = read_one(tmp_path, document(step(call(), results=[result(parts, "1")])))
    assert turns(record) == [([{}], "seen")]
    assert record.notes == {"part: image": 1}


def test_turns_of_a_sub_agent_replace_the_call_that_started_the_sub_agent(tmp_path):
    tool = {"name": "edit", "parameters": {"type": "object"}}
    subagent = document(
        step(source="user", message="Help."),
        step(call("1", by="sub"), results=[result("of the sub-agent", "1")]),
        tools=[tool],
        trajectory_id="s",
    )
    refs = [{"trajectory_id": "s"}]
    value = document(
        step(call("1", n=1), results=[result("first", "1")]),
        step(call("2", ask="help"), results=[result("it says", "2", subagent_trajectory_ref=refs)]),
        step(call("3", n=3), results=[result("last", "3")]),
        subagent_trajectories=[subagent],
    )
    record = read_one(tmp_path, value)
    assert turns(record) == [
        ([{"n": 1}], "first"),
        ([{"by": "sub"}], "of the sub-agent"),
        ([{"n": 3}], "last"),
    ]
    assert record.notes == {
        "call of a sub-agent": 1,
        "report of a sub-agent": 1,
        "message of the user": 1,
    }
    assert [tool.name for tool in record.trajectory.tools] == ["bash", "edit"]
    places = [event.place for event in record.events if event.role == "action"]
    assert places[1] == "subagent_trajectories[0].steps[1].tool_calls[0]"


def test_external_and_unreferenced_sub_agents_are_counted(tmp_path):
    refs = [{"trajectory_path": "other.json"}, {"trajectory_id": "s"}, {"trajectory_id": "s"}]
    value = document(
        step(source="system", results=[result(None, subagent_trajectory_ref=refs)]),
        subagent_trajectories=[
            document(trajectory_id="s"),
            document(step(call(), results=[result("a", "1")]), trajectory_id="unnamed"),
        ],
    )
    record = read_one(tmp_path, value)
    assert turns(record) == []
    assert record.notes["sub-agent whose trajectory is elsewhere"] == 1
    assert record.notes["sub-agent that no step names"] == 1


def test_text_that_the_terminus_harness_added_is_marked(tmp_path):
    def spans(text):
        record = read_one(tmp_path, document(step(call(), results=[result(text, "1")])))
        (turn,) = record.trajectory.turns
        assert turn.observation == text
        return [(text[span.start : span.end], span.what) for span in turn.spans], turn.is_cut

    heading = "New Terminal Output:\n"
    assert spans(f"{heading}$ ls\nNew Terminal Output:\n") == (
        [(heading, "heading of the screen")],
        False,
    )
    cut_note = "\n[... output limited to 10 bytes; 3 interior bytes omitted ...]\n"
    assert spans(f"{heading}a{cut_note}b") == (
        [(heading, "heading of the screen"), (cut_note, "note that it is cut")],
        True,
    )
    head, tail = "Current terminal state:\nCurrent Terminal Screen:\n", "\n\nAre you sure you want "
    tail += "to mark the task as complete? Say so."
    assert spans(f"{head}$ {tail}") == (
        [(head, "heading of the screen"), (tail, "question whether the task is complete")],
        False,
    )
    complaint = "Previous response had parsing errors:\nERROR: no JSON\n\nPlease fix it."
    assert spans(complaint) == ([(complaint, "complaint about the response")], False)


def test_an_episode_without_calls_has_no_turns(tmp_path):
    assert read_one(tmp_path, document()).trajectory.turns == ()


@pytest.mark.parametrize(
    ("path", "task"), [("extra.task_id", "t"), ("extra.instance_id", "t"), ("notes", "")]
)
def test_the_task_id_comes_from_known_fields_or_the_task_option(tmp_path, path, task):
    outer, _, inner = path.partition(".")
    value = EPISODE | {outer: {inner: "t"} if inner else "t"}
    assert read_one(tmp_path, value).trajectory.task_id == task
    assert read_one(tmp_path, value, task=path).trajectory.task_id == "t"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (document() | {"steps": None}, "steps: "),
        (document({"source": "robot"}), "steps.0.source: "),
        (document(step({"function_name": "a"})), "steps.0.tool_calls.0.tool_call_id: "),
        (document(subagent_trajectories=[{}]), "subagent_trajectories.0.schema_version: "),
        (document(step(call(), results=[result("\ud800", "1")])), "a text in it is no Unicode"),
        ({"steps": []}, "schema_version: Field required"),
        ("no object", "the whole: "),
    ],
)
def test_a_damaged_record_is_a_problem_that_names_the_field(tmp_path, value, problem):
    (record,) = logs.read("atif", tmp_path, json.dumps(value))
    assert record.trajectory is None
    assert problem in record.problem


def test_deeply_nested_sub_agents_are_an_episode_or_a_problem(tmp_path):
    value = document(trajectory_id="s")
    for _ in range(200):
        value = document(subagent_trajectories=[value], trajectory_id="s")
    assert logs.none_is_lost(logs.read("atif", tmp_path, value))


def test_a_trajectory_is_detected_by_its_schema_version(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(EPISODE | {"schema_version": "ATIF-v9"}))
    assert form_of(files_of(str(path))) == "atif"
    assert not importer_of("atif").claims({"schema_version": "1"})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=logs.damaged(EPISODE | {"subagent_trajectories": [EPISODE | {"trajectory_id": "s"}]}))
def test_a_record_that_is_changed_anywhere_is_an_episode_or_a_problem(tmp_path, value):
    records = logs.read("atif", tmp_path, json.dumps(value))
    assert logs.none_is_lost(records)
    assert all(record.problem or record.trajectory.model_dump_json() for record in records)
