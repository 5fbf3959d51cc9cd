"""Chats with tool calls: special cases of real chats, as records written for these tests."""

import copy
import json
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.data.importers import importer_of
from agentworld.data.importers.messages import MessagesOptions
from agentworld.records.trajectory import Trajectory
from agentworld.storage.source import files_of

IMPORTER = importer_of("messages")


def call(name, arguments, call_id="c1"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(*calls, content=None):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(content, call_id="c1"):
    return {"role": "tool", "tool_call_id": call_id, "content": content}


EXCHANGE = [assistant(call("f", '{"b": 1,"a":2}')), result("seen")]


def read(folder, *records, **options):
    path = folder / "chats.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    (file,) = files_of(str(path))
    return list(IMPORTER.read(file, MessagesOptions(**options), "text"))


def read_one(folder, record, **options):
    (item,) = read(folder, record, **options)
    assert not item.problem
    return item


def turns(item):
    return [(turn.action, turn.observation) for turn in item.trajectory.turns]


CALL = '{"name":"f","arguments":{"a":2,"b":1}}'


@pytest.mark.parametrize("name", ["messages", "traj", "trajectory", "conversation", "history"])
def test_a_record_is_an_object_with_a_list_of_messages(tmp_path, name):
    assert turns(read_one(tmp_path, {name: EXCHANGE})) == [(CALL, "seen")]


def test_a_record_can_be_a_list_or_contain_the_list_at_a_given_path(tmp_path):
    assert turns(read_one(tmp_path, EXCHANGE)) == [(CALL, "seen")]
    assert turns(read_one(tmp_path, {"a": [{"b": EXCHANGE}]}, messages="a.0.b")) == [(CALL, "seen")]


@pytest.mark.parametrize("arguments", [{"a": 2, "b": 1}, '{"a":2,"b":1}', '{"b": 1, "a": 2}'])
def test_arguments_can_be_an_object_or_json_text(tmp_path, arguments):
    record = [assistant(call("f", arguments)), result("seen")]
    assert turns(read_one(tmp_path, record)) == [(CALL, "seen")]


@pytest.mark.parametrize(
    ("arguments", "expected"), [("{not json", "{not json"), ("[1]", [1]), ([1], [1]), ("3", 3)]
)
def test_arguments_that_are_no_object_stay_as_the_agent_wrote_them(tmp_path, arguments, expected):
    (turn,) = turns(read_one(tmp_path, [assistant(call("f", arguments)), result("error")]))
    assert json.loads(turn[0]) == {"name": "f", "arguments": expected}


def test_a_call_without_arguments_has_an_empty_object(tmp_path):
    for arguments in (None, ""):
        (turn,) = turns(read_one(tmp_path, [assistant(call("f", arguments)), result("seen")]))
        assert turn == ('{"name":"f","arguments":{}}', "seen")


def test_calls_in_the_layout_of_inspect_are_read(tmp_path):
    inspect_call = {"id": "c1", "function": "f", "arguments": {"b": 1, "a": 2}}
    assert turns(read_one(tmp_path, [assistant(inspect_call), result("seen")])) == [(CALL, "seen")]


def test_function_calls_of_the_older_api_are_read(tmp_path):
    message = {"role": "assistant", "function_call": {"name": "f", "arguments": '{"a":2,"b":1}'}}
    answer = {"role": "function", "name": "f", "content": "seen"}
    assert turns(read_one(tmp_path, [message, answer])) == [(CALL, "seen")]


def test_two_calls_with_one_id_are_paired_with_their_own_results(tmp_path):
    record = [assistant(call("f", "{}")), result("1"), assistant(call("g", "{}")), result("2")]
    assert [observation for _, observation in turns(read_one(tmp_path, record))] == ["1", "2"]


def test_parallel_calls_are_separate_turns(tmp_path):
    record = [
        assistant(call("f", "{}", "x"), call("g", "{}", "y")),
        result("of y", "y"),
        result("of x", "x"),
    ]
    assert [observation for _, observation in turns(read_one(tmp_path, record))] == ["of x", "of y"]


def test_an_empty_or_null_result_is_an_empty_observation(tmp_path):
    for content in ("", None):
        assert turns(read_one(tmp_path, [EXCHANGE[0], result(content)])) == [(CALL, "")]


def test_text_parts_are_joined_and_images_are_counted(tmp_path):
    content = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "data:"}},
        {"type": "text", "text": "b"},
        "c",
    ]
    item = read_one(tmp_path, [EXCHANGE[0], result(content)])
    assert turns(item) == [(CALL, "a\nb\nc")]
    assert item.notes == {"part: image_url": 1}


def test_messages_other_than_calls_and_results_are_omitted_and_counted(tmp_path):
    record = [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "hello"},
        assistant(call("f", "{}"), content="I look"),
        result("seen"),
        {"role": "exit", "content": "done"},
    ]
    item = read_one(tmp_path, record)
    assert len(turns(item)) == 1
    assert item.trajectory.initial_state == ""
    assert item.notes == {
        "message of the system": 1,
        "message of the user": 1,
        "message of the exit": 1,
        "what the agent wrote beside its calls": 1,
    }
    assert read_one(tmp_path, record, start="user").trajectory.initial_state == "hello"


def test_an_mcp_tool_keeps_its_output_schema_and_its_annotated_effect(tmp_path):
    tools = [
        {"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}},
        {
            "name": "b",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
            "outputSchema": "none",
        },
        {
            "name": "c",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": False, "title": "C"},
        },
    ]
    item = read_one(tmp_path, {"messages": EXCHANGE, "tools": tools})
    fields = [(tool.name, tool.output_schema, tool.effect) for tool in item.trajectory.tools]
    assert fields == [("a", {"type": "object"}, ""), ("b", None, "read"), ("c", None, "write")]


def test_task_tools_and_model_are_imported_and_the_solution_is_not(tmp_path):
    tool = {"name": "f", "description": "looks", "parameters": {"type": "object"}}
    record = {
        "task_id": 7,
        "model": "gpt-x",
        "messages": EXCHANGE,
        "tools": [{"type": "function", "function": tool}, {"type": "function"}],
        "info": {"reward": 1.0, "actions": ["the solution"]},
    }
    item = read_one(tmp_path, record, licence="MIT")
    assert (item.trajectory.task_id, item.trajectory.source) == ("7", "gpt-x")
    assert item.trajectory.licence == "MIT"
    assert [tool.name for tool in item.trajectory.tools] == ["f"]
    assert item.notes == {"tool without a name or a valid schema": 1}
    assert "solution" not in item.trajectory.model_dump_json()
    variant = read_one(tmp_path, {**record, "meta": {"case": "a"}}, task="meta.case", source="mine")
    assert (variant.trajectory.task_id, variant.trajectory.source) == ("a", "mine")


def test_a_tool_whose_schema_has_no_canonical_json_is_left_out_of_its_episode(tmp_path):
    schemas = [{"type": "object", "maximum": number} for number in (2**53, 2**63 - 1)]
    tools = [{"name": f"f{number}", "parameters": schema} for number, schema in enumerate(schemas)]
    item = read_one(tmp_path, {"messages": EXCHANGE, "tools": tools})
    assert [tool.name for tool in item.trajectory.tools] == ["f0"]
    assert item.notes == {"tool without a name or a valid schema": 1}
    assert item.trajectory.digest


@pytest.mark.parametrize("depth", range(193, 200))
def test_an_episode_is_a_problem_if_the_depth_of_a_schema_prevents_reading_it_back(tmp_path, depth):
    schema = {"type": "object", **reduce(lambda inner, _: {"items": inner}, range(depth), {})}
    record = {"messages": EXCHANGE, "tools": [{"name": "f", "parameters": schema}]}
    item, next_item = read(tmp_path, record, EXCHANGE)
    assert turns(next_item) == [(CALL, "seen")]
    if item.problem:
        assert (depth > 196, item.problem) == (True, "tools: a schema in it is nested too deeply")
    else:
        text = item.trajectory.model_dump_json()
        assert Trajectory.model_validate_json(text) == item.trajectory


def test_a_chat_without_calls_is_an_episode_without_turns(tmp_path):
    assert turns(read_one(tmp_path, [{"role": "user", "content": "hello"}])) == []


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({}, "no list of messages"),
        (3, "no list of messages"),
        ({"messages": [{"content": "x"}]}, "messages.0.role"),
        ([{"role": "assistant", "tool_calls": [{"id": 1}]}], "messages.0.tool_calls.0"),
        ([3], "messages.0"),
    ],
)
def test_an_invalid_record_reports_its_field_and_the_next_record_is_read(tmp_path, record, problem):
    bad_item, good_item = read(tmp_path, record, EXCHANGE)
    assert problem in bad_item.problem
    assert turns(good_item) == [(CALL, "seen")]


def test_only_a_chat_that_calls_tools_is_claimed():
    assert IMPORTER.claims({"messages": EXCHANGE})
    assert IMPORTER.claims(EXCHANGE)
    for value in ({}, [], 3, None, {"messages": [{"role": "user", "content": "hello"}]}):
        assert not IMPORTER.claims(value)


CHAT = {"task_id": "t", "messages": [{"role": "user", "content": "hello"}, *EXCHANGE], "tools": []}
VALUE = st.sampled_from([None, True, -1, 2**70, 1.5, "", "\x00", "\ud800", [], {}, [[]], {"a": {}}])


def _paths(value, path=()):
    yield path
    items = {**value} if isinstance(value, dict) else {}
    if isinstance(value, list):
        items = dict(enumerate(value))
    for key, inner in items.items():
        yield from _paths(inner, (*path, key))


@given(st.sampled_from([path for path in _paths(CHAT) if path]), VALUE)
def test_a_record_with_any_wrong_value_is_an_episode_or_a_problem(tmp_path_factory, path, value):
    record = copy.deepcopy(CHAT)
    *parents, last = path
    inner = record
    for key in parents:
        inner = inner[key]
    inner[last] = value
    (item,) = read(tmp_path_factory.mktemp("chats"), record)
    assert bool(item.problem) != bool(item.trajectory)
