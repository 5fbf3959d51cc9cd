"""Parses commands and observations of a shell.

It runs nothing. A command that the grammar does not know has a class too.
"""

import re
import shlex
from typing import Literal, NamedTuple, cast

CommandClass = Literal[
    "write",
    "append",
    "cat",
    "ls",
    "mkdir",
    "cd",
    "pwd",
    "rm",
    "touch",
    "cp",
    "mv",
    "grep",
    "count",
    "pipe",
    "head",
    "tail",
    "sort",
    "export",
    "variable",
    "status",
    "echo",
    "test",
    "other",
    "unknown",
]
"""`other` is a compound of commands or no command at all, `unknown` any other program."""

_SAME_NAME = set("cat ls mkdir cd pwd rm touch cp mv grep head tail sort export test".split())
_UNKNOWN_COMMAND = 127
_PROMPT_LINE = re.compile(r"\[(\d{1,3})\] ([~/].*)")
_TOKEN = re.compile(r"&&|\|\||>>|[|&;<>]|[^\s|&;<>]+")
_QUOTING = re.compile(r"[\\'\"`(){}]")
_CONNECTORS = {"|", "||", "&&", "&", ";"}


class Screen(NamedTuple):
    """A parsed observation: lines of output, then a prompt line."""

    lines: tuple[str, ...]
    prompt: str
    """The prompt line; empty if the last line is not a prompt line."""
    status: int | None
    folder: str | None


class Command(NamedTuple):
    """One simple command."""

    words: tuple[str, ...]
    source: str = ""
    """The file after `<`."""
    target: str = ""
    """The file after `>` or `>>`."""
    appends: bool = False


class Line(NamedTuple):
    """The commands of a line and their connectors."""

    commands: tuple[Command, ...]
    connectors: tuple[str, ...]


def read_screen(observation: str) -> Screen:
    """Separates the output from the prompt line `[exit status] folder`."""
    *lines, last = observation.split("\n")
    match = _PROMPT_LINE.fullmatch(last)
    if not match:
        return Screen((*lines, last), "", None, None)
    return Screen(tuple(lines), last, int(match[1]), match[2])


def is_unknown_command(observation: str) -> bool:
    """Whether the shell did not know the command."""
    return read_screen(observation).status == _UNKNOWN_COMMAND


def is_prompt_line(line: str) -> bool:
    """Whether a line has the form of a prompt line."""
    return _PROMPT_LINE.fullmatch(line) is not None


def parse_line(action: str) -> Line | None:
    """The commands of a line; null if it has no command or an unclosed quote."""
    try:
        tokens = _tokens(action)
    except ValueError:
        return None
    commands, connectors, part = [], [], list[str]()
    for token in [*tokens, ";"]:
        if token not in _CONNECTORS:
            part.append(token)
            continue
        command = _command(part)
        if command is None:
            return None
        commands.append(command)
        connectors.append(token)
        part = []
    return Line(tuple(commands), tuple(connectors[:-1]))


def command_class(action: str) -> CommandClass:
    """The class of an action, for reports."""
    line = parse_line(action)
    return class_of(line) if line else "other"


def class_of(line: Line) -> CommandClass:
    """The class of a parsed line."""
    first = line.commands[0]
    program = first.words[0]
    if "|" in line.connectors:
        return "pipe"
    if program in {"test", "["}:
        return "test"
    if line.connectors:
        return "other"
    if program == "echo":
        return _echo_class(first)
    if first.target:
        return "other"
    if program == "wc":
        return "count"
    return cast(CommandClass, program) if program in _SAME_NAME else "unknown"


def operands_of(command: Command) -> list[str]:
    """The operands: no options, no numbers of `head` and `tail`, and no pattern of `grep`."""
    words = [word for word in command.words[1:] if word == "-" or not word.startswith("-")]
    if command.words[0] in {"head", "tail"}:
        return [word for word in words if not word.isdigit()]
    return words[1:] if command.words[0] == "grep" else words


def _echo_class(command: Command) -> CommandClass:
    if command.target:
        return "append" if command.appends else "write"
    if "$?" in command.words:
        return "status"
    return "variable" if any(word.startswith("$") for word in command.words) else "echo"


def _tokens(action: str) -> list[str]:
    if not _QUOTING.search(action):
        return _TOKEN.findall(action)
    lexer = shlex.shlex(action, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    return list(lexer)


def _command(tokens: list[str]) -> Command | None:
    words, places = [], {"<": "", ">": "", ">>": ""}
    rest = iter(tokens)
    for token in rest:
        if token in places:
            places[token] = next(rest, "")
        else:
            words.append(token)
    if not words:
        return None
    target = places[">>"] or places[">"]
    return Command(tuple(words), places["<"], target, bool(places[">>"]))
