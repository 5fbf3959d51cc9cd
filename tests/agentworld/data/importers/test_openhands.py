import json

import pytest
from hypothesis import HealthCheck, given, settings

from agentworld.data.importers.base import form_of, importer_of
from agentworld.storage.source import files_of
from make import logs

FORM = "openhands"


def action(number, kind="run", **args):
    return {
        "id": number,
        "timestamp": f"2025-04-30T16:45:{number:02}.5",
        "source": "agent",
        "message": "",
        "action": kind,
        "args": args,
    }


def observation(number, cause, content, kind="run"):
    event = {"id": number, "source": "agent", "observation": kind, "content": content, "extras": {}}
    return event | {"timestamp": f"2025-04-30T16:45:{number:02}.9", "cause": cause}


def with_call(event, call_id, name, arguments):
    """The event with the model response that contains its call."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    response = {
        "model": "m-1",
        "choices": [{"message": {"content": "I look.", "tool_calls": [call]}}],
    }
    metadata = {"function_name": name, "tool_call_id": call_id, "model_response": response}
    return event | {"tool_call_metadata": metadata}


def row(*events, **fields):
    return {"instance_id": "repo-1", "history": list(events), **fields}


OLD_LOG = [
    {"content": "Fix it.", "wait_for_response": False, "action": "message"},
    {"command": "ls", "thought": "I look.", "keep_prompt": True, "action": "run"},
    {"content": "a.py\r\n", "command_id": -1, "command": "ls", "observation": "run"},
    {"code": "print(1)", "thought": "", "action": "run_ipython", "kernel_init_code": "import x"},
    {"content": "1\n[Jupyter current working directory: /w]", "observation": "run_ipython"},
    {"outputs": {}, "thought": "Done.", "action": "finish"},
]
NEW_LOG = [
    with_call(
        action(5, command="ls", thought="I look."), "toolu_01", "execute_bash", '{"command":"ls"}'
    ),
    observation(6, 5, "a.py"),
    action(8, "read", path="a.py", start=0, end=-1, impl_source="oh_aci", view_range=None),
    observation(9, 8, "print(1)", "read"),
]


def test_the_layout_of_2024_is_paired_by_order(tmp_path):
    record = logs.one(FORM, tmp_path, row(*OLD_LOG))
    assert logs.turns(record) == [
        ('{"name":"run","arguments":{"command":"ls"}}', "a.py\r\n"),
        ('{"name":"run_ipython","arguments":{"code":"print(1)"}}', OLD_LOG[4]["content"]),
    ]
    assert record.trajectory.task_id == "repo-1"


def test_an_action_and_its_observation_can_be_a_list_of_two(tmp_path):
    pairs = [[OLD_LOG[1], OLD_LOG[2]], [OLD_LOG[3], OLD_LOG[4]]]
    record = logs.one(FORM, tmp_path, json.dumps(pairs), name="log.json")
    assert record.trajectory.turns == logs.one(FORM, tmp_path, row(*OLD_LOG)).trajectory.turns
    assert logs.turns(logs.one(FORM, tmp_path, row(*pairs))) == logs.turns(record)
    assert record.events[0].place == "events[0][0].thought"


def test_harness_text_in_an_observation_is_marked(tmp_path):
    turn = logs.one(FORM, tmp_path, row(*OLD_LOG)).trajectory.turns[1]
    (span,) = turn.spans
    assert turn.observation[span.start : span.end] == "[Jupyter current working directory: /w]"
    assert span.what == "harness"
    assert not turn.is_cut


@pytest.mark.parametrize(
    "mark",
    [
        "[... Observation truncated due to length ...]",
        "<response clipped><NOTE>Due to the max output limit, only a part is shown.</NOTE>",
    ],
)
def test_a_result_truncated_by_the_harness_is_marked_as_cut(tmp_path, mark):
    record = logs.one(
        FORM, tmp_path, row(action(1, command="x"), observation(2, 1, f"a\n{mark}\nb"))
    )
    (turn,) = record.trajectory.turns
    assert turn.is_cut
    assert turn.observation[turn.spans[0].start : turn.spans[0].end] == mark
    assert record.notes["result that is cut"] == 1


def test_an_action_is_the_call_of_the_model_or_else_the_harness_event(tmp_path):
    record = logs.one(FORM, tmp_path, row(*NEW_LOG))
    assert logs.turns(record) == [
        ('{"name":"execute_bash","arguments":{"command":"ls"}}', "a.py"),
        ('{"name":"read","arguments":{"end":-1,"path":"a.py","start":0}}', "print(1)"),
    ]
    assert record.trajectory.source == "m-1"
    assert record.trajectory.turns[0].time == "2025-04-30T16:45:06.9"


def test_a_model_response_of_another_call_is_not_used(tmp_path):
    event = with_call(action(5, command="ls"), "toolu_01", "execute_bash", '{"command":"rm"}')
    event["tool_call_metadata"]["tool_call_id"] = "toolu_02"
    record = logs.one(FORM, tmp_path, row(event, observation(6, 5, "a")))
    assert record.trajectory.turns[0].action == '{"name":"run","arguments":{"command":"ls"}}'


def test_the_new_layout_is_paired_by_cause_and_not_by_order(tmp_path):
    events = [action(5, command="a"), action(7, command="b"), observation(8, 7, "of b")]
    record = logs.one(FORM, tmp_path, row(*events, observation(9, 5, "of a")))
    assert [turn[1] for turn in logs.turns(record)] == ["of a", "of b"]


def test_ids_above_64_bits_are_exact(tmp_path):
    base = 2**70
    events = [action(1, command="a"), action(2, command="b")]
    events[0]["id"], events[1]["id"] = base, base + 1
    record = logs.one(
        FORM, tmp_path, row(*events, observation(3, base + 1, "of b"), observation(4, base, "of a"))
    )
    assert [turn[1] for turn in logs.turns(record)] == ["of a", "of b"]


def test_an_error_without_a_cause_becomes_no_turn(tmp_path):
    error = observation(7, 0, "Parameter 'command' is expected.", "error")
    del error["cause"]
    record = logs.one(FORM, tmp_path, row(*NEW_LOG[:2], error, action(8, command="x")))
    assert len(record.trajectory.turns) == 1
    assert record.notes["observation whose cause is no action"] == 1
    assert record.notes["call without a result"] == 1


def test_an_error_caused_by_an_action_is_an_observation(tmp_path):
    record = logs.one(FORM, tmp_path, row(action(1, command="x"), observation(2, 1, "no", "error")))
    assert [turn[1] for turn in logs.turns(record)] == ["no"]


def test_events_between_agent_user_and_harness_are_counted_by_kind(tmp_path):
    events = [
        action(0, "system", content="You are.", tools=[]),
        action(1, "recall", query="q"),
        observation(2, 1, "context", "recall"),
        observation(3, 0, "", "agent_state_changed"),
        observation(4, 0, "", "null"),
        action(5, "think", thought="hm"),
        observation(6, 5, "Your thought has been logged.", "think"),
        action(7, "message", content="Hello."),
        action(8, "finish", outputs={}),
    ]
    record = logs.one(FORM, tmp_path, row(*events))
    assert record.trajectory.turns == ()
    kinds = {"recall": 2, "think": 2}
    single_kinds = ("system", "agent_state_changed", "null", "message", "finish")
    assert record.notes == {f"event: {kind}": n for kind, n in kinds.items()} | {
        f"event: {kind}": 1 for kind in single_kinds
    }


def test_an_empty_observation_is_kept(tmp_path):
    record = logs.one(FORM, tmp_path, row(action(1, command="x"), observation(2, 1, "")))
    assert [turn[1] for turn in logs.turns(record)] == [""]


def test_the_tools_are_those_of_the_system_event(tmp_path):
    tool = {
        "type": "function",
        "function": {"name": "execute_bash", "parameters": {"type": "object"}},
    }
    record = logs.one(FORM, tmp_path, row(action(0, "system", tools=[tool, {"type": "function"}])))
    assert [imported_tool.name for imported_tool in record.trajectory.tools] == ["execute_bash"]
    assert record.notes["tool without a name or a valid schema"] == 1


def test_a_file_that_is_an_array_of_events_is_one_episode(tmp_path):
    record = logs.one(FORM, tmp_path, json.dumps(NEW_LOG), name="log.json")
    assert len(record.trajectory.turns) == 2
    assert record.place == ""


def test_a_truncated_array_is_a_problem_and_its_complete_events_are_read(tmp_path):
    bad_item, good_item = logs.read(FORM, tmp_path, json.dumps(NEW_LOG)[:-40], name="log.json")
    assert "the rest was not read" in bad_item.problem
    assert len(good_item.trajectory.turns) == 1
    assert good_item.notes["call without a result"] == 1


def test_the_task_of_a_resolver_is_its_issue(tmp_path):
    issue = {"owner": "o", "repo": "r", "number": 5, "title": "t", "body": "b"}
    record = logs.one(FORM, tmp_path, {"issue": issue, "history": OLD_LOG})
    assert record.trajectory.task_id == "o/r/5"


def test_the_patch_and_the_instruction_appear_in_no_event(tmp_path):
    record = logs.one(
        FORM, tmp_path, row(*NEW_LOG, test_result={"git_patch": "secret"}, instruction="secret")
    )
    assert not any("secret" in event.text for event in record.events)


def test_options_name_the_event_list_and_the_task(tmp_path):
    value = {"result": {"log": NEW_LOG}, "case": {"number": 7}}
    record = logs.one(FORM, tmp_path, value, events="result.log", task="case.number", source="mine")
    assert len(record.trajectory.turns) == 2
    assert (record.trajectory.task_id, record.trajectory.source) == ("7", "mine")
    (record,) = logs.read(FORM, tmp_path, value)
    assert "--set events=PATH" in record.problem


@pytest.mark.parametrize("value", [row(*OLD_LOG), row(*NEW_LOG), NEW_LOG, [OLD_LOG[1], OLD_LOG[2]]])
def test_openhands_rows_are_detected_as_the_openhands_format(tmp_path, value):
    (tmp_path / "log.jsonl").write_text(json.dumps(value))
    assert form_of(files_of(str(tmp_path))) == FORM


@pytest.mark.parametrize(
    "value",
    [
        {"trajectory": [{"action": "ls", "observation": "a.py"}]},
        {"messages": [{"role": "user", "content": "x"}]},
        {"history": []},
        {"history": "run"},
        [],
        7,
        None,
        "run",
    ],
)
def test_other_rows_are_not_claimed(value):
    assert not importer_of(FORM).claims(value)


def test_an_episode_without_events_has_no_turns(tmp_path):
    assert logs.one(FORM, tmp_path, {"history": []}).trajectory.turns == ()


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        ({"id": 1, "action": 7}, "history[0].action: "),
        ({"id": 1.5, "action": "run"}, "id"),
        ({"action": "run", "args": []}, "args"),
        ("run", "history[0]: "),
        (["deep"], "history[0][0]: "),
    ],
)
def test_a_damaged_record_reports_the_field_and_the_next_record_is_read(tmp_path, event, problem):
    bad_item, good_item = logs.read(FORM, tmp_path, {"history": [event]}, row(*NEW_LOG))
    assert problem in bad_item.problem
    assert bad_item.place == "line 1"
    assert len(good_item.trajectory.turns) == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=logs.damaged([row(*OLD_LOG), row(*NEW_LOG), NEW_LOG]))
def test_damaged_input_is_read_as_episodes_or_problems(tmp_path, value):
    assert logs.none_is_lost(logs.read(FORM, tmp_path, json.dumps(value), name="log.json") or [])
    if isinstance(value, list) and value:
        assert logs.none_is_lost(logs.read(FORM, tmp_path, *map(json.dumps, value)))
    importer_of(FORM).claims(value)


def sdk_call(number, tool="terminal", **arguments):
    """An event of the V1 SDK, with the agent's call and the harness's parsed form of the call."""
    return {
        "kind": "ActionEvent",
        "id": f"a{number}",
        "source": "agent",
        "timestamp": f"2025-12-01T10:00:{number:02}",
        "thought": [{"type": "text", "text": "I look."}],
        "tool_name": tool,
        "tool_call_id": f"call_{number}",
        "tool_call": {"id": f"call_{number}", "name": tool, "arguments": json.dumps(arguments)},
        "action": {"kind": "TerminalAction", "reset": False, "timeout": None, **arguments},
    }


def sdk_result(number, content, tool="terminal", **fields):
    return {
        "kind": "ObservationEvent",
        "id": f"o{number}",
        "source": "environment",
        "timestamp": f"2025-12-01T10:01:{number:02}",
        "tool_name": tool,
        "tool_call_id": f"call_{number}",
        "action_id": f"a{number}",
        "observation": {"kind": "TerminalObservation", "is_error": False, **content},
        **fields,
    }


def text(words):
    return {"content": [{"type": "text", "text": words}]}


SDK_LOG = [
    {
        "kind": "SystemPromptEvent",
        "id": "s",
        "tools": [{"title": "terminal", "description": "A shell.", "action_type": "x"}],
    },
    {"kind": "MessageEvent", "id": "m", "source": "user", "llm_message": {"role": "user"}},
    sdk_call(1, command="ls"),
    sdk_call(2, command="pwd"),
    sdk_result(2, text("/w")),
    sdk_result(1, text("a.py")),
    sdk_call(3, command="rm -r /"),
    {"kind": "UserRejectObservation", "id": "r", "tool_name": "terminal", "tool_call_id": "call_3"},
    sdk_call(4, path="x"),
    {"kind": "AgentErrorEvent", "id": "e", "tool_name": "terminal", "tool_call_id": "call_4"},
    sdk_call(5, "finish", message="Done."),
    sdk_result(5, text("Done."), "finish"),
    {"kind": "ConversationStateUpdateEvent", "id": "c", "key": "x", "value": 1},
]


def test_sdk_events_are_read_by_kind_and_paired_by_call_id(tmp_path):
    record = logs.one(FORM, tmp_path, row(*SDK_LOG))
    assert logs.turns(record) == [
        ('{"name":"terminal","arguments":{"command":"ls"}}', "a.py"),
        ('{"name":"terminal","arguments":{"command":"pwd"}}', "/w"),
    ]
    assert record.trajectory.turns[0].time == "2025-12-01T10:01:01"
    assert [(tool.name, tool.description) for tool in record.trajectory.tools] == [
        ("terminal", "A shell.")
    ]
    assert record.notes == {
        "what the agent wrote beside its calls": 5,
        "call without a result": 2,
        "event: SystemPromptEvent": 1,
        "event: MessageEvent": 1,
        "event: UserRejectObservation of terminal": 1,
        "event: AgentErrorEvent of terminal": 1,
        "event: ActionEvent of finish": 1,
        "event: ObservationEvent of finish": 1,
        "event: ConversationStateUpdateEvent": 1,
    }


def test_an_sdk_action_without_a_tool_call_is_the_parsed_action(tmp_path):
    event = sdk_call(1, command="ls") | {"tool_call": None}
    record = logs.one(FORM, tmp_path, row(event, sdk_result(1, {"output": "a.py"})))
    assert logs.turns(record) == [
        ('{"name":"terminal","arguments":{"command":"ls","reset":false}}', "a.py")
    ]


@pytest.mark.parametrize("name", ["log.jsonl", "log.json"])
def test_a_file_of_sdk_events_is_one_episode(tmp_path, name):
    rows = SDK_LOG if name == "log.jsonl" else [json.dumps(SDK_LOG)]
    record = logs.one(FORM, tmp_path, *rows, name=name)
    assert len(record.trajectory.turns) == 2


def test_each_folder_of_sdk_event_files_is_one_episode(tmp_path):
    for name in ("first", "second"):
        folder = tmp_path / name / "events"
        folder.mkdir(parents=True)
        for number, event in enumerate(SDK_LOG):
            (folder / f"event-{number:05}-{event['id']}.json").write_text(json.dumps(event))
    importer = importer_of(FORM)
    files = files_of(str(tmp_path))
    assert form_of(files) == FORM
    records = [item for file in files for item in importer.read(file, importer.options(), "text")]
    assert [len(record.trajectory.turns) for record in records] == [2, 2]


def test_text_that_the_sdk_harness_cut_or_wrote_is_marked(tmp_path):
    content = "[Tool 'f' executed.]\nx\n<response clipped> of 9"
    record = logs.one(FORM, tmp_path, row(sdk_call(1, "f"), sdk_result(1, text(content), "f")))
    (turn,) = record.trajectory.turns
    assert turn.is_cut
    assert [span.what for span in turn.spans] == ["harness", "cut"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=logs.damaged([row(*SDK_LOG), SDK_LOG]))
def test_damaged_sdk_events_are_read_as_episodes_or_problems(tmp_path, value):
    assert logs.none_is_lost(logs.read(FORM, tmp_path, value, name="log.json"))
