import json

import pytest
from hypothesis import HealthCheck, given, settings

from agentworld.data.importers.base import form_of, importer_of
from agentworld.storage.source import files_of
from make import logs

FORM = "mini_swe_agent"


def render(output, code=0):
    return f"<returncode>{code}</returncode>\n<output>\n{output}</output>"


def user(content, **extra):
    return {"role": "user", "content": content} | ({"extra": extra} if extra else {})


def agent(content, **fields):
    return {"role": "assistant", "content": content, **fields}


def block(command, language="bash"):
    return agent(f"THOUGHT: I look.\n\n```{language}\n{command}\n```")


def calls(*commands):
    """A message with calls of the tool, with the ids c0, c1 and so on."""
    tool_calls = [
        {"type": "function", "id": f"c{number}"}
        | {"function": {"name": "bash", "arguments": json.dumps({"command": command})}}
        for number, command in enumerate(commands)
    ]
    actions = [
        {"command": command, "tool_call_id": f"c{number}"}
        for number, command in enumerate(commands)
    ]
    return agent(None, tool_calls=tool_calls, extra={"actions": actions, "timestamp": 1.5})


def tool(call_id, output):
    extra = {"raw_output": output, "returncode": 0, "timestamp": 2.5}
    return {"role": "tool", "tool_call_id": call_id, "content": render(output), "extra": extra}


def trajectory(*messages, form="mini-swe-agent-1.1", submission="the patch"):
    model = {"model_name": "m-1"}
    info = {"exit_status": "Submitted", "submission": submission, "config": {"model": model}}
    start = [{"role": "system", "content": "You are."}, user("Fix it.\n```bash\nls\n```")]
    return {"info": info, "messages": [*start, *messages], "trajectory_format": form}


OLD_EPISODE = trajectory(
    block("ls"),
    user(render("a.py\n")),
    agent("I cannot."),
    user("Please always provide EXACTLY ONE action."),
    block("echo DONE && cat patch"),
    user("the patch"),
    form="mini-swe-agent-1",
)
NEW_EPISODE = trajectory(
    calls("ls", "pwd"),
    tool("c1", "/w\n"),
    tool("c0", "a.py\n"),
    calls("echo DONE && cat patch"),
    {"role": "exit", "content": "the patch", "extra": {"exit_status": "Submitted"}},
)


def test_format_1_commands_are_code_blocks(tmp_path):
    record = logs.one(FORM, tmp_path, json.dumps(OLD_EPISODE, indent=2), name="repo__1.traj.json")
    assert logs.turns(record) == [("ls", render("a.py\n"))]
    assert (record.trajectory.source, record.trajectory.task_id) == ("m-1", "repo__1")
    assert record.notes == {
        "message of the system": 1,
        "message of the user": 2,
        "what the agent wrote beside its calls": 3,
        "what the agent submitted": 1,
        "call without a result": 1,
    }


def test_format_1_1_commands_are_tool_calls(tmp_path):
    record = logs.one(FORM, tmp_path, NEW_EPISODE)
    assert logs.turns(record) == [
        ('{"name":"bash","arguments":{"command":"ls"}}', render("a.py\n")),
        ('{"name":"bash","arguments":{"command":"pwd"}}', render("/w\n")),
    ]
    assert record.trajectory.turns[0].time == "2.5"
    assert record.notes["message of the exit"] == 1
    assert record.notes["call without a result"] == 1


def test_listed_actions_take_precedence_over_the_code_block(tmp_path):
    message = block("ls") | {"extra": {"actions": [{"command": "ls -a"}]}}
    record = logs.one(FORM, tmp_path, trajectory(message, user(render("a.py"), returncode=0)))
    assert logs.turns(record) == [("ls -a", render("a.py"))]


@pytest.mark.parametrize(
    "message",
    [block("ls", "mswea_bash_command"), agent("<mswea_bash_command>ls</mswea_bash_command>")],
)
def test_a_command_can_be_marked_as_mswea_bash_command(tmp_path, message):
    record = logs.one(FORM, tmp_path, trajectory(message, user(render("a.py"))))
    assert logs.turns(record) == [("ls", render("a.py"))]


def test_two_code_blocks_are_no_command(tmp_path):
    message = agent("```bash\nls\n```\n```bash\npwd\n```")
    record = logs.one(FORM, tmp_path, trajectory(message, user("Please give one.")))
    assert record.trajectory.turns == ()
    assert "call without a result" not in record.notes


def test_responses_api_messages_are_read(tmp_path):
    actions = [{"command": "ls", "tool_call_id": "c0"}]
    response = {"object": "response", "output": [], "extra": {"actions": actions}}
    output = {"type": "function_call_output", "call_id": "c0", "output": render("a.py")}
    record = logs.one(FORM, tmp_path, trajectory(response, output))
    assert logs.turns(record) == [('{"name":"bash","arguments":{"command":"ls"}}', render("a.py"))]


@pytest.mark.parametrize(
    "message",
    [
        user("Limits exceeded.", interrupt_type="LimitsExceeded"),
        user("Command not executed. The user says: no"),
    ],
)
def test_a_harness_message_in_place_of_an_output_is_omitted(tmp_path, message):
    record = logs.one(FORM, tmp_path, trajectory(block("ls"), message))
    assert record.trajectory.turns == ()
    assert record.notes["message of the harness"] == 1


def test_a_printed_patch_is_an_observation_and_the_submitted_patch_is_not(tmp_path):
    messages = [block("cat patch"), user("the patch"), block("echo DONE"), user("the patch")]
    record = logs.one(FORM, tmp_path, trajectory(*messages))
    assert logs.turns(record) == [("cat patch", "the patch")]
    assert record.notes["what the agent submitted"] == 1


def test_the_template_around_an_output_is_marked(tmp_path):
    (turn,) = logs.one(FORM, tmp_path, OLD_EPISODE).trajectory.turns
    assert (
        "".join(
            char
            for index, char in enumerate(turn.observation)
            if not any(span.start <= index < span.end for span in turn.spans)
        )
        == "0a.py\n"
    )
    assert not turn.is_cut


@pytest.mark.parametrize(
    "output",
    [
        "<returncode>0</returncode>\n<warning>\nToo long.\n</warning><output_head>\na\n"
        "</output_head>\n<elided_chars>\n9 characters elided\n</elided_chars>\n<output_tail>\n"
        "b\n</output_tail>",
        "a\n... [9 characters elided] ...\nb\n[exit code 0]",
    ],
)
def test_a_truncated_output_is_marked_as_cut(tmp_path, output):
    (turn,) = logs.one(FORM, tmp_path, trajectory(block("ls"), user(output))).trajectory.turns
    assert turn.is_cut
    assert "cut" in {span.what for span in turn.spans}
    assert turn.observation == output


@pytest.mark.parametrize("value", [OLD_EPISODE, NEW_EPISODE])
def test_mini_swe_agent_files_are_detected_as_the_mini_swe_agent_format(tmp_path, value):
    (tmp_path / "x.traj.json").write_text(json.dumps(value, indent=2))
    assert form_of(files_of(str(tmp_path))) == FORM


@pytest.mark.parametrize("value", [{"messages": []}, {"trajectory_format": 1}, [OLD_EPISODE], None])
def test_other_rows_are_not_claimed(value):
    assert not importer_of(FORM).claims(value)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"role": 7}, "messages[2].role: "),
        (agent("x", extra={"actions": [{}]}), "messages[2].extra.actions.0.command: "),
        (agent("x", extra=[]), "messages[2].extra: "),
        ("x", "messages[2]: "),
    ],
)
def test_a_damaged_record_reports_the_field_and_the_next_record_is_read(tmp_path, message, problem):
    bad_record, good_record = logs.read(FORM, tmp_path, trajectory(message), NEW_EPISODE)
    assert bad_record.problem.startswith(problem)
    assert len(good_record.trajectory.turns) == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=logs.damaged([OLD_EPISODE, NEW_EPISODE]))
def test_damaged_input_is_read_as_episodes_or_problems(tmp_path, value):
    rows = value if isinstance(value, list) and value else [value]
    assert logs.none_is_lost(logs.read(FORM, tmp_path, *map(json.dumps, rows)))
    for row in rows:
        importer_of(FORM).claims(row)
