from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.domains.shell.grammar import (
    Command,
    CommandClass,
    command_class,
    is_prompt_line,
    operands_of,
    parse_line,
    read_screen,
)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("echo kolu > rimo.txt", "write"),
        ("echo kolu>rimo.txt", "write"),
        ("echo 'a > b' >> rimo.txt", "append"),
        ("echo kolu tane", "echo"),
        ("echo 'a > b'", "echo"),
        ("echo $A", "variable"),
        ("echo $?", "status"),
        ("cat rimo.txt", "cat"),
        ("cat rimo.txt | grep kolu", "pipe"),
        ("ls | wc -l", "pipe"),
        ("wc -l < rimo.txt", "count"),
        ("grep -l kolu *", "grep"),
        ("test -f rimo.txt && echo yes", "test"),
        ("[ -f rimo.txt ]", "test"),
        ("export A=kolu", "export"),
        ("cd ..", "cd"),
        ("  ls  ", "ls"),
        ("cat a > b", "other"),
        ("ls; pwd", "other"),
        ("echo 'open", "other"),
        ("> rimo.txt", "other"),
        ("", "other"),
        ("kolu tane", "unknown"),
        ("sed s/a/b/ rimo.txt", "unknown"),
    ],
)
def test_an_action_is_classified_by_its_command(action, expected):
    assert command_class(action) == expected


@given(st.text() | st.text("echo |&;<>'\"$?\\-", max_size=20))
def test_any_text_has_a_class(action):
    assert command_class(action) in get_args(CommandClass)


def test_a_line_is_split_into_commands_and_connectors():
    line = parse_line("cat < a.txt | grep -n b >> c.txt && echo ok")
    assert line.commands == (
        Command(("cat",), source="a.txt"),
        Command(("grep", "-n", "b"), target="c.txt", appends=True),
        Command(("echo", "ok")),
    )
    assert line.connectors == ("|", "&&")


@pytest.mark.parametrize(
    ("action", "operands"),
    [
        ("head -n 1 a.txt", ["a.txt"]),
        ("grep -l kolu *", ["*"]),
        ("cp a b", ["a", "b"]),
        ("ls", []),
        ("test -f a", ["a"]),
    ],
)
def test_the_operands_of_a_command_exclude_options_and_patterns(action, operands):
    assert operands_of(parse_line(action).commands[0]) == operands


@pytest.mark.parametrize(
    ("observation", "lines", "status", "folder"),
    [
        ("[0] ~", (), 0, "~"),
        ("kolu\n\n[127] ~/a b", ("kolu", ""), 127, "~/a b"),
        ("[0] ~\n[2] /", ("[0] ~",), 2, "/"),
        ("kolu", ("kolu",), None, None),
        ("", ("",), None, None),
        ("[0] kolu", ("[0] kolu",), None, None),
        ("[x] ~", ("[x] ~",), None, None),
        ("[0]", ("[0]",), None, None),
    ],
)
def test_a_screen_is_split_into_output_and_prompt_line(observation, lines, status, folder):
    screen = read_screen(observation)
    assert (screen.lines, screen.status, screen.folder) == (lines, status, folder)


output = st.lists(st.text(st.characters(blacklist_characters="\n")), max_size=4)


@given(output, st.integers(0, 255), st.text("abc/ .", max_size=9))
def test_every_prompt_line_is_read(lines, status, rest):
    prompt = f"[{status}] ~{rest}"
    assert is_prompt_line(prompt)
    screen = read_screen("\n".join([*lines, prompt]))
    assert screen == (tuple(lines), prompt, status, f"~{rest}")
