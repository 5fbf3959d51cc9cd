"""Which turns of an episode show something that an earlier turn of it changed.

Worked out from the commands, and from the exit status and folder of the recorded prompt
lines. Careful rather than complete: a turn counts only if it reads the content of a file,
the presence of a path, the list of a folder, a variable or `$?`, and an earlier turn made,
changed or removed just that; or if an earlier turn entered the folder that its prompt line
shows. Not counted: a read of the start's own files, an effect of a command that ended in
an error, and what a command that this grammar does not know reads or changes.
"""

import posixpath
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

from agentworld.domains.terminal.grammar import (
    Command,
    CommandClass,
    Line,
    class_of,
    operands_of,
    parse_line,
    read_screen,
)
from agentworld.domains.terminal.past import Past
from agentworld.domains.terminal.words import held_out_words
from agentworld.records.trajectory import Turn

_WORD = re.compile(r"[A-Za-z]+")
_VARIABLE = re.compile(r"\$\{?(\w+|\?)")


class TurnNote(NamedTuple):
    """What is known of a turn in its episode; the fields are those of `SampleTurn`."""

    command_class: CommandClass
    has_output: bool
    depends_on_history: bool
    has_unseen_word: bool


def annotate(initial_state: str, turns: Iterable[Turn]) -> list[TurnNote]:
    """A note for each turn of an episode that began with these files."""
    past = Past.of(initial_state)
    return [_note(past, turn) for turn in turns]


def has_unseen_word(text: str) -> bool:
    """Whether a text holds a word that no training episode may use."""
    return not _unseen().isdisjoint(_WORD.findall(text))


@cache
def _unseen() -> frozenset[str]:
    return frozenset(held_out_words())


def _note(past: Past, turn: Turn) -> TurnNote:
    screen = read_screen(turn.observation)
    line = parse_line(turn.action)
    note = TurnNote(
        command_class=class_of(line) if line else "other",
        has_output=bool(screen.lines),
        depends_on_history=line is not None and _depends(past, line),
        has_unseen_word=has_unseen_word(f"{turn.action} {turn.observation}"),
    )
    if line and screen.status == 0:
        for command in line.commands:
            past.apply(command)
    if screen.folder:
        past.enter(screen.folder)
    past.num_turns += 1
    return note


def _depends(past: Past, line: Line) -> bool:
    return past.is_elsewhere or any(_reads_past(past, command) for command in line.commands)


def _reads_past(past: Past, command: Command) -> bool:
    if command.source and past.path(command.source) in past.contents:
        return True
    if command.target and posixpath.dirname(past.path(command.target)) in past.presences:
        return True
    reads = _READS.get(command.words[0])
    return reads is not None and reads(past, operands_of(command))


def _content(past: Past, names: list[str]) -> bool:
    return any(
        _content_of_all(past) if "*" in name else past.path(name) in past.contents for name in names
    )


def _content_of_all(past: Past) -> bool:
    inside = (path for path in past.contents if posixpath.dirname(path) == past.here)
    return past.here in past.listings or any(inside)


def _presence(past: Past, names: list[str]) -> bool:
    return any(past.path(name) in past.presences for name in names)


def _presence_of_first(past: Past, names: list[str]) -> bool:
    return _presence(past, names[:1])


def _listing(past: Past, names: list[str]) -> bool:
    paths = [past.path(name) for name in names] or [past.here]
    return any(path in past.listings or path in past.presences for path in paths)


def _values(past: Past, words: list[str]) -> bool:
    names = _VARIABLE.findall(" ".join(words))
    return any(past.num_turns > 0 if name == "?" else name in past.variables for name in names)


_READS: dict[str, Callable[[Past, list[str]], bool]] = {
    **dict.fromkeys("cat head tail sort grep wc".split(), _content),
    **dict.fromkeys("cd rm rmdir mkdir test [".split(), _presence),
    **dict.fromkeys("cp mv".split(), _presence_of_first),
    "ls": _listing,
    "echo": _values,
}
