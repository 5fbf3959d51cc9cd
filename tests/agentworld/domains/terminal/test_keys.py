import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.data.importers.replies import ReplyOptions, action_in
from agentworld.domains.base import ActionError, domain_of
from agentworld.domains.terminal.keys import (
    MOST_CHARACTERS,
    Keys,
    is_refusal,
    parse_keys,
    refusal,
    render_keys,
)

TERMINAL = domain_of("terminal")
COMMANDS = [{"keystrokes": "ls\n", "duration": 0.5}, {"keystrokes": "C-c", "duration": 1.0}]


@pytest.mark.parametrize(
    "action",
    [
        json.dumps(COMMANDS),
        json.dumps({"analysis": "a", "plan": "b", "commands": COMMANDS}),
        f"```json\n{json.dumps(COMMANDS)}\n```",
        json.dumps([{**COMMANDS[0], "is_blocking": True}, "C-c"]),
    ],
)
def test_every_terminus_action_format_is_normalized_to_one_form(action):
    assert TERMINAL.parse_action(action) == json.dumps(COMMANDS)


def test_a_single_command_is_parsed_as_a_list_of_one():
    assert parse_keys(json.dumps(COMMANDS[0])) == (Keys(keystrokes="ls\n", duration=0.5),)


def test_an_imported_terminus_reply_is_parsed_to_the_same_action():
    reply = "I look. " + json.dumps({"analysis": "{", "plan": "", "commands": COMMANDS})
    action = action_in(reply, ReplyOptions(action_json="commands"))
    assert TERMINAL.parse_action(action) == json.dumps(COMMANDS)


def test_imported_keystrokes_without_durations_are_read():
    reply = json.dumps({"commands": COMMANDS})
    action = action_in(reply, ReplyOptions(action_json="commands.*.keystrokes"))
    assert [keys.keystrokes for keys in parse_keys(action)] == ["ls\n", "C-c"]


@pytest.mark.parametrize(
    ("keystrokes", "text"),
    [
        ("ls\n", b"ls\n"),
        ("C-c", b"\x03"),
        ("C-d", b"\x04"),
        ("C-[", b"\x1b"),
        ("Enter", b"\r"),
        ("Up", b"\x1b[A"),
        ("C-c\n", b"C-c\n"),
        ("é", "é".encode()),
        ("", b""),
    ],
)
def test_a_key_name_is_pressed_and_other_text_is_typed(keystrokes, text):
    assert Keys(keystrokes=keystrokes).text == text


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("ls", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("3", "it is no list of commands"),
        ('{"commands": "ls"}', "it is no list of commands"),
        ("[3]", "a command is no object: 3"),
        ('[{"duration": 1}]', "keystrokes"),
        ('[{"keystrokes": 1}]', "keystrokes"),
        ('["\\ud800"]', "its keystrokes are no Unicode text"),
        (json.dumps(["x" * (MOST_CHARACTERS + 1)]), f"more than {MOST_CHARACTERS} characters"),
    ],
)
def test_a_malformed_action_stays_unchanged_and_is_refused_with_a_reason(action, reason):
    with pytest.raises(ActionError) as error:
        parse_keys(action)
    assert TERMINAL.parse_action(action) == action
    observation = refusal(error.value)
    assert reason in observation
    assert is_refusal(observation)
    assert TERMINAL.is_failure(observation)


def test_an_empty_policy_output_is_no_action():
    with pytest.raises(ActionError, match="no keystrokes"):
        TERMINAL.parse_action(" \n")


@given(st.text(), st.floats(0, 60))
def test_rendered_keys_are_parsed_to_the_same_keys(keystrokes, duration):
    keys = (Keys(keystrokes=keystrokes, duration=duration),)
    assert parse_keys(render_keys(keys)) == keys


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [("-1", 0), ("61", 60), ("1e999", 60), ("NaN", 1), ("true", 1), ("null", 1), ('"soon"', 1)],
)
def test_invalid_durations_are_clamped_or_replaced_by_the_default(duration, seconds):
    (keys,) = parse_keys(f'[{{"keystrokes": "ls", "duration": {duration}}}]')
    assert keys.duration == seconds
