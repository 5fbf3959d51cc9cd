"""Finds the last command's output on a screen: the lines after the last prompt with a command."""

import re

PROMPT = re.compile(r"^\S+@\S+:\S*[$#](?: (?P<command>.*))?$")


def last_block(screen: str) -> list[str]:
    """The output of the last command, without its own line and the next prompt.

    All lines if the screen shows no prompt with a command, as in a full-screen program.
    """
    lines = screen.split("\n")
    if lines and (match := PROMPT.match(lines[-1])) and not match["command"]:
        lines.pop()
    for number in range(len(lines) - 1, -1, -1):
        if (match := PROMPT.match(lines[number])) and match["command"]:
            return lines[number + 1 :]
    return lines


def new_lines(previous: str, screen: str) -> list[str]:
    """The lines of a screen that the previous screen, possibly scrolled up, does not have."""
    old, new = previous.split("\n"), screen.split("\n")
    last = old.pop()
    for num_scrolled in range(len(old) + 1):
        common_lines = old[num_scrolled:]
        if new[: len(common_lines)] == common_lines and new[len(common_lines) :][:1]:
            rest = new[len(common_lines) :]
            if rest[0].startswith(last) or num_scrolled == len(old):
                return [line for line in (rest[0].removeprefix(last), *rest[1:]) if line]
    return new
