import json

import pytest
from hypothesis import HealthCheck, given, settings

from agentworld.data.importers.base import form_of, importer_of
from agentworld.storage.source import files_of
from make import logs

FORM = "claude_code"


def line(number, kind, content, *, message=None, **fields):
    """One line of a session; `message` is the id of an agent's message."""
    body = {"role": kind, "content": content}
    if kind == "assistant":
        body |= {"id": message or f"msg_{number}", "model": "m-1"}
    return {
        "type": kind,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number > 1 else None,
        "sessionId": "s-1",
        "isSidechain": False,
        "timestamp": f"2026-01-01T00:00:{number:02}Z",
        "message": body,
        **fields,
    }


def call(number, command, tool="toolu", **fields):
    block = {
        "type": "tool_use",
        "id": f"{tool}_{number}",
        "name": "Bash",
        "input": {"command": command},
    }
    return line(number, "assistant", [block], **fields)


def answer(number, call_number, content, tool="toolu", **fields):
    block = {"type": "tool_result", "tool_use_id": f"{tool}_{call_number}", "content": content}
    return line(number, "user", [block], **fields)


def observations(record):
    return [turn.observation for turn in record.trajectory.turns]


SESSION = [
    {"type": "file-history-snapshot", "messageId": "x", "isSnapshotUpdate": False},
    line(1, "user", "List them."),
    line(2, "assistant", [{"type": "text", "text": "I look."}], message="msg_a"),
    call(3, "ls", message="msg_a"),
    call(4, "pwd", message="msg_a"),
    answer(5, 3, "a.py", toolUseResult={"stdout": "a.py"}),
    answer(6, 4, [{"type": "text", "text": "/w"}]),
]


def test_a_file_is_one_session_and_a_message_can_span_several_lines(tmp_path):
    record = logs.one(FORM, tmp_path, *SESSION)
    assert logs.turns(record) == [
        ('{"name":"Bash","arguments":{"command":"ls"}}', "a.py"),
        ('{"name":"Bash","arguments":{"command":"pwd"}}', "/w"),
    ]
    assert (record.trajectory.task_id, record.trajectory.source) == ("s-1", "m-1")
    assert record.trajectory.turns[0].time == "2026-01-01T00:00:05Z"
    assert record.events[record.pairs[0].action].place == "line 4 message.content[0]"
    assert record.notes == {
        "line that is no message": 1,
        "message of the user": 1,
        "what the agent wrote beside its calls": 1,
    }


def test_two_objects_on_one_line_are_both_read(tmp_path):
    lines = [json.dumps(row) for row in SESSION]
    record = logs.one(FORM, tmp_path, *lines[:3], lines[3] + lines[4], *lines[5:])
    assert observations(record) == ["a.py", "/w"]


def test_a_compaction_neither_ends_the_session_nor_adds_an_observation(tmp_path):
    boundary = {"type": "system", "subtype": "compact_boundary", "sessionId": "s-1"}
    summary = line(7, "user", "This session continues: a.py", isCompactSummary=True)
    record = logs.one(
        FORM, tmp_path, *SESSION, boundary, summary, call(8, "id"), answer(9, 8, "me")
    )
    assert observations(record) == ["a.py", "/w", "me"]
    assert record.notes["summary of a compaction"] == 1


def test_a_sub_agent_is_an_episode_of_the_same_task(tmp_path):
    fields = {"isSidechain": True, "agentId": "a1b2"}
    lines = [*SESSION, call(20, "id", **fields), answer(21, 20, "me", **fields)]
    main, agent = logs.read(FORM, tmp_path, *lines)
    assert observations(main) == ["a.py", "/w"]
    assert observations(agent) == ["me"]
    assert agent.place == "agent a1b2"
    assert agent.trajectory.task_id == main.trajectory.task_id == "s-1"


def test_sub_agents_without_ids_are_separated_by_their_first_lines(tmp_path):
    fields = {"isSidechain": True}
    lines = [
        line(20, "user", "Do a.", **fields | {"parentUuid": None}),
        line(30, "user", "Do b.", **fields | {"parentUuid": None}),
        call(21, "a", **fields),
        call(31, "b", **fields),
        answer(32, 31, "of b", **fields),
        answer(22, 21, "of a", **fields),
    ]
    assert [observations(record) for record in logs.read(FORM, tmp_path, *lines)] == [
        ["of a"],
        ["of b"],
    ]


def test_a_file_of_only_a_sub_agent_is_one_episode(tmp_path):
    fields = {"isSidechain": True, "agentId": "a1b2"}
    record = logs.one(FORM, tmp_path, call(20, "id", **fields), answer(21, 20, "me", **fields))
    assert observations(record) == ["me"]


def test_a_resumed_session_contains_each_turn_once(tmp_path):
    copies = [row | {"uuid": f"copy of {row['uuid']}"} for row in SESSION[3:]]
    record = logs.one(FORM, tmp_path, *SESSION, *SESSION[1:3], *copies, call(8, "id"))
    assert observations(record) == ["a.py", "/w"]
    assert record.notes["copy of an earlier line"] == 2
    assert record.notes["copy of an earlier block"] == 4
    assert record.notes["call without a result"] == 1


def test_a_system_reminder_is_marked(tmp_path):
    content = "a.py\n<system-reminder>Careful.</system-reminder>"
    record = logs.one(FORM, tmp_path, call(1, "ls"), answer(2, 1, content))
    (turn,) = record.trajectory.turns
    assert turn.observation == content
    assert content[turn.spans[0].start :] == "<system-reminder>Careful.</system-reminder>"


def test_messages_generated_by_the_harness_are_omitted(tmp_path):
    error_line = line(2, "assistant", [{"type": "text", "text": "API Error: 529"}])
    error_line["message"]["model"] = "<synthetic>"
    record = logs.one(
        FORM, tmp_path, line(1, "user", "Caveat: ...", isMeta=True), error_line, call(3, "ls")
    )
    assert record.notes == {"message of the harness": 2, "call without a result": 1}
    assert record.trajectory.source == "m-1"


def test_a_command_line_output_stream_is_read_as_a_session(tmp_path):
    start = {"type": "system", "subtype": "init", "session_id": "s-2", "tools": ["Bash"]}
    lines = [call(1, "ls"), answer(2, 1, "a.py"), call(3, "id"), answer(4, 3, "me")]
    for number, row in enumerate(lines):
        for name in ("sessionId", "isSidechain", "uuid", "parentUuid"):
            del row[name]
        row |= {"session_id": "s-2", "parent_tool_use_id": "toolu_9" if number > 1 else None}
    end = {"type": "result", "subtype": "success", "result": "secret", "session_id": "s-2"}
    main, agent = logs.read(FORM, tmp_path, start, *lines, end)
    assert (observations(main), observations(agent)) == (["a.py"], ["me"])
    assert main.trajectory.task_id == "s-2"
    assert not any("secret" in event.text for event in [*main.events, *agent.events])


def test_a_file_without_a_message_is_a_session_without_turns(tmp_path):
    summary = {"type": "summary", "summary": "About files", "leafUuid": "u1"}
    assert logs.one(FORM, tmp_path, summary).trajectory.turns == ()


@pytest.mark.parametrize("row", [SESSION[0], SESSION[1], SESSION[3]])
def test_claude_code_lines_are_detected_as_the_claude_code_format(tmp_path, row):
    (tmp_path / "log.jsonl").write_text(json.dumps(row))
    assert form_of(files_of(str(tmp_path))) == FORM


@pytest.mark.parametrize(
    "value", [{"type": "user"}, {"sessionId": "s"}, {"messages": []}, {"type": 1}, [1], None]
)
def test_other_rows_are_not_claimed(value):
    assert not importer_of(FORM).claims(value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"type": "user", "message": {"ro', "it is not JSON"),
        ("[1, 2]", "the whole"),
        (json.dumps(line(8, "user", "x") | {"message": 7}), "message"),
        (json.dumps(line(8, "assistant", [{"type": "tool_use"}])), "content[0].name: "),
        (json.dumps(answer(8, 7, "half \ud83d")), "half of a surrogate pair"),
        (json.dumps(call(8, "half \ud83d")), "half of a surrogate pair"),
        (json.dumps(line(8, "user", "x") | {"type": None}), "type: "),
    ],
)
def test_a_damaged_line_is_a_problem_and_the_rest_of_the_session_is_read(tmp_path, text, problem):
    record, session = logs.read(FORM, tmp_path, *SESSION, text, call(9, "id"), answer(10, 9, "me"))
    assert problem in record.problem
    assert record.place == "line 8"
    assert observations(session) == ["a.py", "/w", "me"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=logs.damaged([*SESSION, call(8, "id", isSidechain=True, agentId="a")]))
def test_damaged_input_is_read_as_episodes_or_problems(tmp_path, lines):
    lines = lines if isinstance(lines, list) and lines else [lines]
    assert logs.none_is_lost(logs.read(FORM, tmp_path, *map(json.dumps, lines)))
    for row in lines:
        importer_of(FORM).claims(row)
