"""What a screen says of the last command: the lines after the last prompt with a command."""

import re

PROMPT = re.compile(r"^\S+@\S+:\S*[$#](?: (?P<command>.*))?$")


def last_block(screen: str) -> list[str]:
    """The last command's lines: what it showed, without its own line and the prompt after it.

    All lines where the screen shows no prompt with a command, as in a program that fills it.
    """
    lines = screen.split("\n")
    if lines and (match := PROMPT.match(lines[-1])) and not match["command"]:
        lines.pop()
    for number in range(len(lines) - 1, -1, -1):
        if (match := PROMPT.match(lines[number])) and match["command"]:
            return lines[number + 1 :]
    return lines


def new_lines(previous: str, screen: str) -> list[str]:
    """The lines that a screen shows beyond the previous one, which may have scrolled up."""
    old, new = previous.split("\n"), screen.split("\n")
    last = old.pop()
    for num_scrolled in range(len(old) + 1):
        common_lines = old[num_scrolled:]
        if new[: len(common_lines)] == common_lines and new[len(common_lines) :][:1]:
            rest = new[len(common_lines) :]
            if rest[0].startswith(last) or num_scrolled == len(old):
                return [line for line in (rest[0].removeprefix(last), *rest[1:]) if line]
    return new
