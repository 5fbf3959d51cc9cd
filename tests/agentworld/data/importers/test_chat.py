"""Chats in which a user message is the observation: special cases of real chats, as records
written for these tests.
"""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import ValidationError

from agentworld.data.importers.base import form_of, importer_of
from agentworld.storage.source import files_of
from make import logs

FORM = "chat"
MANUAL = "Use the doors.\n---\nTask: a worked example\nAct: knock\nSeen:\nIt is open.\n---\n"
RULES = {
    "prefix": "Seen:\n",
    "starts_after": "---\nTask: ",
    "harness_lines": [r"\d+ turns are left\.", "Now answer."],
    "action_after": "<do>",
    "action_before": "</do>",
    "no_action": "<answer>",
}
NO_INTRO = RULES | {"starts_after": ""}


def agent(text, role="assistant"):
    return {"role": role, "content": text}


def user(text, role="user"):
    return {"role": role, "content": text}


def act(text):
    return agent(f"I think. <do>{text}</do>")


def observe(text):
    return user(f"Seen:\n{text}\n3 turns are left.\n")


CHAT = {
    "state": {
        "history": [
            user(MANUAL + "---\nTask: find the key"),
            act("look()"),
            observe("a chest"),
            act("open('chest')"),
            observe("a key"),
            act("take('key')"),
        ],
        "last": {"observation": "a key"},
    },
    "task": {"task_id": "t-1", "reference": "take('key')"},
}


def read(folder, *messages, **options):
    return logs.one(FORM, folder, {"messages": list(messages)}, **options)


def test_the_text_after_the_prefix_is_the_observation_of_the_marked_action(tmp_path):
    record = logs.one(FORM, tmp_path, CHAT, **RULES)
    assert logs.turns(record) == [
        ("look()", "a chest\n3 turns are left.\n"),
        ("open('chest')", "a key\n3 turns are left.\n"),
    ]
    assert record.trajectory.task_id == "t-1"
    assert record.events[-1].place == "state.history[5]"
    assert record.notes == {
        "what stands before the start": 1,
        "what the agent wrote beside its action": 3,
        "call without a result": 1,
    }


CITIES = [json.dumps({"name": "temp", "arguments": {"city": city}}) for city in ("Oslo", "Rome")]
TOOL_LOG = [
    ("gpt", "Hello."),
    ("human", "weather?"),
    ("function_call", CITIES[0]),
    ("observation", '{"temp": 3}'),
    ("gpt", "It is 3 degrees."),
    ("human", "and Rome?"),
    ("function_call", CITIES[1]),
    ("observation", '{"temp": 15}'),
    ("gpt", "It is 15 degrees."),
]


def test_the_turns_of_a_chat_with_function_calls_are_the_calls_and_their_results(tmp_path):
    chat = {"conversations": [{"from": role, "value": text} for role, text in TOOL_LOG]}
    record = logs.one(FORM, tmp_path, chat)
    assert logs.turns(record) == [(CITIES[0], '{"temp": 3}'), (CITIES[1], '{"temp": 15}')]
    assert record.trajectory.initial_state == "weather?"
    assert record.notes == {"message of the gpt": 3, "message of the human": 1}


def test_a_worked_example_is_no_part_of_the_episode(tmp_path):
    record = logs.one(FORM, tmp_path, CHAT, **RULES)
    assert record.trajectory.initial_state == "find the key"
    (intro,) = [event for event in record.events if event.reason == "what stands before the start"]
    assert intro.text == MANUAL + "---\nTask: "


def test_worked_examples_can_be_separate_messages(tmp_path):
    record = read(
        tmp_path,
        user("Example: a"),
        agent("Example: b"),
        user("Here you go. Task: find it"),
        agent("look"),
        user("Task: is also in here"),
        starts_after="Task: ",
    )
    assert record.trajectory.initial_state == "find it"
    assert logs.turns(record) == [("look", "Task: is also in here")]


def test_a_chat_without_the_start_text_is_a_problem(tmp_path):
    (record,) = logs.read(FORM, tmp_path, [user("go"), agent("Task:")], starts_after="Task:")
    assert record.problem == "no user message contains 'Task:'; correct --set starts_after=TEXT"


def test_the_reference_and_the_repeated_state_are_not_in_the_episode(tmp_path):
    text = logs.one(FORM, tmp_path, CHAT, **RULES).trajectory.model_dump_json()
    assert "take(" not in text
    assert text.count("a key") == 1


def test_trailing_harness_lines_stay_and_are_one_span(tmp_path):
    observation = "Now answer.\na chest\n3 turns are left.\n\nNow answer.\r\n\n"
    record = read(tmp_path, user("go"), act("look()"), user("Seen:\n" + observation), **NO_INTRO)
    (turn,) = record.trajectory.turns
    (span,) = turn.spans
    assert turn.observation == observation
    assert observation[span.start : span.end] == "3 turns are left.\n\nNow answer.\r\n\n"
    assert span.what == "line of the harness"


def test_an_observation_of_only_harness_lines_is_one_span(tmp_path):
    record = read(tmp_path, user("go"), act("look()"), user("Seen:\nNow answer."), **NO_INTRO)
    (turn,) = record.trajectory.turns
    assert [(span.start, span.end) for span in turn.spans] == [(0, 11)]


def test_an_observation_without_harness_lines_has_no_span(tmp_path):
    record = read(tmp_path, user("go"), act("look()"), user("Seen:\na chest\n"), **NO_INTRO)
    assert record.trajectory.turns[0].spans == ()


def test_an_invalid_regular_expression_for_harness_lines_is_refused():
    with pytest.raises(ValidationError, match="not a regular expression"):
        importer_of(FORM).options(harness_lines=["("])


def test_an_answer_to_a_reply_without_an_action_is_no_observation(tmp_path):
    record = read(
        tmp_path,
        user("go"),
        act("look()"),
        observe("a chest"),
        agent("I give up"),
        observe("Your reply holds no action."),
        agent("<do>take()</do> <answer>done</answer>"),
        observe("Your answer is wrong."),
        **NO_INTRO,
    )
    assert logs.turns(record) == [("look()", "a chest\n3 turns are left.\n")]
    assert record.notes["reply without an action"] == 2
    assert record.notes["answer to a reply without an action"] == 2


def test_an_answer_is_paired_with_the_latest_reply(tmp_path):
    record = read(tmp_path, user("go"), agent("a"), agent("b"), user("of b"), user("more"))
    assert logs.turns(record) == [("b", "of b")]
    assert record.notes == {"call without a result": 1, "result without a call": 1}


def test_an_action_is_not_paired_with_the_answer_to_a_later_reply(tmp_path):
    record = read(tmp_path, user("go"), act("look()"), agent("Hm."), observe("So?"), **NO_INTRO)
    assert logs.turns(record) == []
    assert record.notes["call without a result"] == 1
    assert record.notes["answer to a reply without an action"] == 1


def test_a_message_without_the_prefix_is_no_observation(tmp_path):
    record = read(tmp_path, user("go"), agent("a"), user("please"), user("It: b"), prefix="It: ")
    assert logs.turns(record) == [("a", "b")]
    assert record.notes == {"message of the user": 1}


def test_an_empty_answer_is_an_observation(tmp_path):
    assert logs.turns(read(tmp_path, user("go"), agent("a"), user(""))) == [("a", "")]


def test_the_first_user_messages_form_the_initial_state(tmp_path):
    record = read(tmp_path, agent("Be brief.", "system"), user("a"), user("b"), agent("c"))
    assert record.trajectory.initial_state == "a\n\nb"
    assert record.notes == {"message of the system": 1, "call without a result": 1}


def test_several_marked_parts_of_a_reply_are_one_action(tmp_path):
    reply = "<do>a()\n</do> then <do>b()</do> and <do>never closed"
    record = read(tmp_path, user("go"), agent(reply), observe("both"), **NO_INTRO)
    assert record.trajectory.turns[0].action == "a()\nb()"


def test_an_action_without_an_end_mark_extends_to_the_end_of_the_reply(tmp_path):
    record = read(
        tmp_path,
        user("go"),
        agent("Thought: I look.\nAction: look\nAction Input: here"),
        user("a chest"),
        agent("Thought: hm"),
        action_after="Action:",
    )
    assert logs.turns(record) == [("look\nAction Input: here", "a chest")]
    assert record.notes["reply without an action"] == 1


def test_the_field_names_of_sharegpt_chats_are_read(tmp_path):
    chat = [
        {"from": "system", "value": "Act."},
        {"from": "human", "value": "go"},
        {"from": "gpt", "value": "look"},
        {"from": "human", "value": "a chest"},
    ]
    for row in ({"conversations": chat}, chat):
        record = logs.one(FORM, tmp_path, row)
        assert logs.turns(record) == [("look", "a chest")]
        assert record.trajectory.initial_state == "go"


def test_options_name_the_message_list_and_the_fields(tmp_path):
    chat = [{"who": "human", "what": "go"}, {"who": "ai", "what": "a"}, {"who": "user", "what": ""}]
    options = {"messages": "x.0", "role": "who", "text": "what", "task": "id", "source": "m"}
    record = logs.one(FORM, tmp_path, {"x": [chat], "id": 2**70}, **options)
    assert logs.turns(record) == [("a", "")]
    assert record.trajectory.task_id == str(2**70)
    assert record.trajectory.source == "m"


def keys(*keystrokes, **fields):
    commands = [{"keystrokes": text, "duration": 0.1} for text in keystrokes]
    return json.dumps({"analysis": "{hm}", "plan": "x", "commands": commands, **fields})


def test_terminus_keystrokes_are_actions_and_screens_are_observations(tmp_path):
    record = read(
        tmp_path,
        user("Do it.\nCurrent terminal state:\n$ "),
        agent("<think>{maybe}</think>\n```json\n" + keys("ls\n", "C-c") + "\n```"),
        user("New Terminal Output:\n$ ls\na.txt"),
        agent('{"analysis": cut'),
        user("New Terminal Output:\nyour JSON is damaged"),
        agent(keys()),
        user("New Terminal Output:\n$ "),
        starts_after="Current terminal state:\n",
        prefix="New Terminal Output:\n",
        action_json="commands.*.keystrokes",
    )
    assert record.trajectory.initial_state == "$ "
    assert logs.turns(record) == [('["ls\\n", "C-c"]', "$ ls\na.txt"), ("[]", "$ ")]
    assert record.notes["reply without an action"] == 1
    assert record.notes["answer to a reply without an action"] == 1


def test_a_text_value_in_a_json_reply_is_the_action_and_other_values_stay_json(tmp_path):
    for action, text in (("ls é ", "ls é"), ({"é": 1}, '{"é": 1}'), (None, "null")):
        reply = "so {} and {" + json.dumps({"do": action})
        record = read(tmp_path, user("go"), agent(reply), user("x"), action_json="do")
        assert logs.turns(record) == [(text, "x")]


def test_a_reply_of_deeply_nested_braces_has_no_action(tmp_path):
    record = read(tmp_path, user("go"), agent('{"a":' * 50_000), user("x"), action_json="do")
    assert record.notes == {
        "reply without an action": 1,
        "answer to a reply without an action": 1,
    }


def test_a_cut_observation_is_marked_and_keeps_its_time(tmp_path):
    answer = user("abc") | {"timestamp": 1.5}
    (turn,) = read(tmp_path, user("go"), agent("a"), answer, cut_at=3).trajectory.turns
    assert (turn.is_cut, turn.time) == (True, "1.5")


def test_non_text_parts_are_omitted_and_counted(tmp_path):
    parts = [{"type": "text", "text": "a"}, {"type": "image", "data": "x"}]
    record = read(tmp_path, user("go"), agent("look"), user(parts))
    assert logs.turns(record) == [("look", "a")]
    assert record.notes == {"part: image": 1}


def test_an_empty_chat_is_an_episode_without_turns(tmp_path):
    assert logs.turns(logs.one(FORM, tmp_path, {"messages": []})) == []


def detect_form(folder, row):
    path = folder / "a.jsonl"
    path.write_text(json.dumps(row) + "\n")
    return form_of(files_of(str(path)))


def test_chats_with_an_observation_prefix_and_terminus_chats_are_claimed(tmp_path):
    messages = [user("go"), agent("a"), user("Observation: b")]
    for row in ({"state": {"history": messages}}, [user("go"), agent(keys("ls\n")), user("$ ")]):
        assert detect_form(tmp_path, row) == FORM


@pytest.mark.parametrize(
    "row",
    [
        [user("hello"), agent("hi"), user("how are you?")],
        {"history": [user("go"), agent("a"), user("Observation: b")], "trajectory": []},
        [user("go"), agent("a"), user([{"type": "tool_result", "content": "Observation:"}])],
        [user("Observation:"), {"role": "assistant", "content": "a", "tool_calls": []}],
        [1],
        [],
        {},
        None,
    ],
)
def test_other_chats_are_not_claimed(row):
    assert not importer_of(FORM).claims(row)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({}, "it has no list of messages; name its path with --set messages=PATH"),
        ([{"content": "a"}], r"messages\.0\.role: Field required"),
        ({"messages": [1]}, r"messages\.0: Input should be .* \(got '1'\)"),
        ({"messages": [{"role": "user", "timestamp": []}]}, r"messages\.0\.timestamp"),
    ],
)
def test_a_problem_names_the_field(tmp_path, row, problem):
    bad_record, good_record = logs.read(FORM, tmp_path, row, CHAT)
    assert re.match(problem, bad_record.problem)
    assert not good_record.problem


@pytest.mark.parametrize("options", [{}, RULES, {"action_json": "a.*.b", "unwrap": "textcontent"}])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(row=logs.damaged(CHAT))
def test_a_damaged_record_is_an_episode_or_a_problem(tmp_path, options, row):
    importer_of(FORM).claims(row)
    assert logs.none_is_lost(logs.read(FORM, tmp_path, row, **options))
