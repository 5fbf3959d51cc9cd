import json

import pytest
from hypothesis import HealthCheck, given, settings

from agentworld.data.importers.base import form_of, importer_of
from agentworld.storage.source import files_of
from make import logs

FORM = "anthropic"


def use(call_id, name="Bash", **arguments):
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id, content, **fields):
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def text(words):
    return {"type": "text", "text": words}


def agent(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def row(*messages, **fields):
    return {"messages": list(messages), "model": "m-1", "task_id": "t-1", **fields}


CONVERSATION = row(
    {"role": "user", "content": "List them."},
    agent(text("I look."), use("toolu_1", command="ls"), use("toolu_2", command="pwd")),
    user(result("toolu_2", "/w"), result("toolu_1", [text("a.py"), text("b.py")])),
    agent(text("Two files.")),
)
LS = '{"name":"Bash","arguments":{"command":"ls"}}'


def test_a_call_and_its_result_form_a_turn_in_any_order_of_results(tmp_path):
    record = logs.one(FORM, tmp_path, CONVERSATION)
    pwd = '{"name":"Bash","arguments":{"command":"pwd"}}'
    assert logs.turns(record) == [(LS, "a.py\nb.py"), (pwd, "/w")]
    assert (record.trajectory.source, record.trajectory.task_id) == ("m-1", "t-1")
    assert record.events[record.pairs[0].observation].place == "messages[2].content[1]"
    assert record.notes == {
        "message of the user": 1,
        "what the agent wrote beside its calls": 2,
    }


def test_the_first_user_message_can_be_the_initial_state(tmp_path):
    record = logs.one(FORM, tmp_path, CONVERSATION, start="user")
    assert record.trajectory.initial_state == "List them."
    assert "message of the user" not in record.notes


def test_an_error_result_is_an_observation_and_its_flag_is_counted(tmp_path):
    messages = [agent(use("a", command="ls")), user(result("a", "no such file", is_error=True))]
    record = logs.one(FORM, tmp_path, row(*messages))
    assert logs.turns(record) == [(LS, "no such file")]
    assert record.notes == {"flag that a result is an error": 1}


@pytest.mark.parametrize("content", [None, "", []])
def test_a_result_without_content_is_an_empty_observation(tmp_path, content):
    messages = [agent(use("a", command="ls")), user(result("a", content))]
    assert logs.turns(logs.one(FORM, tmp_path, row(*messages))) == [(LS, "")]


def test_an_image_in_a_result_is_omitted_and_counted_by_type(tmp_path):
    image = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
    messages = [agent(use("a", command="ls")), user(result("a", [text("a.py"), image]))]
    record = logs.one(FORM, tmp_path, row(*messages))
    assert logs.turns(record) == [(LS, "a.py")]
    assert record.notes == {"part: image": 1}


def test_a_system_reminder_stays_in_the_observation_and_is_marked(tmp_path):
    content = "a.py\n\n<system-reminder>\nBe careful.\n</system-reminder>\n"
    messages = [agent(use("a", command="ls")), user(result("a", content))]
    (turn,) = logs.one(FORM, tmp_path, row(*messages)).trajectory.turns
    assert turn.observation == content
    (span,) = turn.spans
    assert span.what == "reminder"
    assert content[span.start : span.end] == content.strip().removeprefix("a.py\n\n")


@pytest.mark.parametrize(
    "mark",
    [
        "\n... [12 lines truncated] ...\n",
        "<persisted-output>\nToo large (9KB).\n\nPreview (2KB):\na\n...\n</persisted-output>",
        "[Old tool result content cleared]",
    ],
)
def test_a_truncated_result_is_marked_as_cut(tmp_path, mark):
    messages = [agent(use("a", command="ls")), user(result("a", mark))]
    (turn,) = logs.one(FORM, tmp_path, row(*messages)).trajectory.turns
    assert turn.is_cut
    assert turn.observation == mark


def test_a_call_that_the_user_refused_has_no_result(tmp_path):
    refusal = "The user doesn't want to proceed with this tool use. It was rejected."
    messages = [agent(use("a", command="ls")), user(result("a", refusal, is_error=True))]
    record = logs.one(FORM, tmp_path, row(*messages))
    assert record.trajectory.turns == ()
    assert record.notes == {"call that the user refused": 1, "call without a result": 1}


def test_thinking_and_server_tool_blocks_are_omitted_and_counted_by_type(tmp_path):
    search = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    server = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
    record = logs.one(FORM, tmp_path, row(agent(thought, server, search)))
    assert record.notes == {
        "block: thinking": 1,
        "block: server_tool_use": 1,
        "block: web_search_tool_result": 1,
    }


def test_mcp_tool_blocks_are_calls_and_results(tmp_path):
    call = use("m", "echo", words="hi") | {"type": "mcp_tool_use", "server_name": "s"}
    answer = result("m", [text("hi")]) | {"type": "mcp_tool_result"}
    assert [turn[1] for turn in logs.turns(logs.one(FORM, tmp_path, row(agent(call, answer))))] == [
        "hi"
    ]


def test_results_of_two_calls_with_one_id_are_paired_in_order(tmp_path):
    messages = [
        agent(use("a", command="ls")),
        user(result("a", "first")),
        agent(use("a", command="pwd")),
        user(result("a", "second")),
    ]
    record = logs.one(FORM, tmp_path, row(*messages))
    assert [turn[1] for turn in logs.turns(record)] == ["first", "second"]


def test_imported_tools_have_their_input_schemas(tmp_path):
    tool = {"name": "Bash", "input_schema": {"type": "object", "required": ["command"]}}
    record = logs.one(FORM, tmp_path, row(tools=[tool]))
    assert record.trajectory.tools[0].input_schema == tool["input_schema"]
    assert record.trajectory.turns == ()


def test_the_answer_appears_in_no_event(tmp_path):
    record = logs.one(FORM, tmp_path, CONVERSATION | {"reward": 1, "answer": "secret"})
    assert not any("secret" in event.text for event in record.events)


@pytest.mark.parametrize("value", [CONVERSATION, CONVERSATION["messages"]])
def test_anthropic_rows_are_detected_as_the_anthropic_format(tmp_path, value):
    (tmp_path / "log.jsonl").write_text(json.dumps(value))
    assert form_of(files_of(str(tmp_path))) == FORM


@pytest.mark.parametrize(
    "value",
    [
        {"messages": [{"role": "assistant", "content": "x", "tool_calls": []}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
        {"type": "user", "message": {"role": "user", "content": "x"}, "sessionId": "s"},
        {"messages": "x"},
        [1],
        None,
    ],
)
def test_other_rows_are_not_claimed(value):
    assert not importer_of(FORM).claims(value)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"content": "x"}, "messages[0].role: "),
        (agent({"type": "tool_use", "id": "a"}), "messages[0].content[0].name: "),
        (agent(use(7)), "messages[0].content[0].id: "),
        (user(result(["a"], "x")), "messages[0].content[0].tool_use_id: "),
        ("x", "messages[0]: "),
    ],
)
def test_a_damaged_record_reports_the_field_and_the_next_record_is_read(tmp_path, message, problem):
    bad_record, good_record = logs.read(FORM, tmp_path, row(message), CONVERSATION)
    assert bad_record.problem.startswith(problem)
    assert len(good_record.trajectory.turns) == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=logs.damaged(CONVERSATION))
def test_damaged_input_is_read_as_episodes_or_problems(tmp_path, value):
    assert logs.none_is_lost(logs.read(FORM, tmp_path, value))
    importer_of(FORM).claims(value)
