import pytest

from agentworld.domains.terminal.transcript import last_block, new_lines

PROMPT = "agent@world:~$"


@pytest.mark.parametrize(
    ("screen", "block"),
    [
        (f"{PROMPT} cat a\nx\n{PROMPT} cat b\ny\nz\n{PROMPT}", ["y", "z"]),
        (f"{PROMPT} cat a\nx\n{PROMPT} cd b\nagent@world:~/b$", []),
        (f"{PROMPT} python3\n>>>", [">>>"]),
        ("root@4f2:/app# ls\na\nroot@4f2:/app#", ["a"]),
        ("a page\nof less", ["a page", "of less"]),
        (PROMPT, []),
        ("", [""]),
    ],
)
def test_the_last_block_is_the_output_of_the_last_command(screen, block):
    assert last_block(screen) == block


@pytest.mark.parametrize(
    ("previous", "screen", "lines"),
    [
        (PROMPT, f"{PROMPT} ls\na\n{PROMPT}", [" ls", "a", PROMPT]),
        ("1\n2\n>", "2\n> x\n3\n>", [" x", "3", ">"]),
        ("1\n2\n>", "new", ["new"]),
        ("", "a", ["a"]),
        ("1\n>", "1\n>", []),
    ],
)
def test_new_lines_are_those_not_on_the_previous_screen(previous, screen, lines):
    assert new_lines(previous, screen) == lines
