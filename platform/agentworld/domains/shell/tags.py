"""The tags of turns of a shell episode: the class of a command, and what it shows.

The commands and the recorded prompt lines (exit status, folder) decide whether a turn shows an
earlier change (the tag `history`). The rule misses some cases but adds no wrong ones. A turn counts
if it reads the content of a file, the presence of a path, the list of a folder, a variable or `$?`,
and an earlier turn created, changed or removed it; or if an earlier turn entered the folder in its
prompt line. These do not count: reads of the start's own files, effects of commands that failed,
and what a command that the grammar does not know reads or changes.
"""

import posixpath
import re
from collections.abc import Callable, Iterable

from agentworld.domains.shell.effects import Effects
from agentworld.domains.shell.grammar import (
    Command,
    Line,
    class_of,
    operands_of,
    parse_line,
    read_screen,
)
from agentworld.domains.word_tags import word_tags
from agentworld.records.trajectory import Turn

_VARIABLE = re.compile(r"\$\{?(\w+|\?)")


def tags_of(initial_state: str, turns: Iterable[Turn]) -> list[frozenset[str]]:
    """The tags of each turn of an episode that began with these files."""
    effects = Effects.of(initial_state)
    return [_tags(effects, turn) for turn in turns]


def _tags(effects: Effects, turn: Turn) -> frozenset[str]:
    screen = read_screen(turn.observation)
    line = parse_line(turn.action)
    tags = word_tags(
        turn,
        has_output=bool(screen.lines),
        shows_history=line is not None and _shows_change(effects, line),
    )
    tags.add(class_of(line) if line else "other")
    if line and screen.status == 0:
        for command in line.commands:
            effects.apply(command)
    if screen.folder:
        effects.enter(screen.folder)
    effects.num_turns += 1
    return frozenset(tags)


def _shows_change(effects: Effects, line: Line) -> bool:
    return effects.is_elsewhere or any(_reads_past(effects, command) for command in line.commands)


def _reads_past(effects: Effects, command: Command) -> bool:
    if command.source and effects.path(command.source) in effects.contents:
        return True
    if command.target and posixpath.dirname(effects.path(command.target)) in effects.presences:
        return True
    reads = _READS.get(command.words[0])
    return reads is not None and reads(effects, operands_of(command))


def _content(effects: Effects, names: list[str]) -> bool:
    return any(
        _content_of_all(effects) if "*" in name else effects.path(name) in effects.contents
        for name in names
    )


def _content_of_all(effects: Effects) -> bool:
    inside = (path for path in effects.contents if posixpath.dirname(path) == effects.cwd)
    return effects.cwd in effects.listings or any(inside)


def _presence(effects: Effects, names: list[str]) -> bool:
    return any(effects.path(name) in effects.presences for name in names)


def _presence_of_first(effects: Effects, names: list[str]) -> bool:
    return _presence(effects, names[:1])


def _listing(effects: Effects, names: list[str]) -> bool:
    paths = [effects.path(name) for name in names] or [effects.cwd]
    return any(path in effects.listings or path in effects.presences for path in paths)


def _values(effects: Effects, words: list[str]) -> bool:
    names = _VARIABLE.findall(" ".join(words))
    return any(
        effects.num_turns > 0 if name == "?" else name in effects.variables for name in names
    )


_READS: dict[str, Callable[[Effects, list[str]], bool]] = {
    **dict.fromkeys("cat head tail sort grep wc".split(), _content),
    **dict.fromkeys("cd rm rmdir mkdir test [".split(), _presence),
    **dict.fromkeys("cp mv".split(), _presence_of_first),
    "ls": _listing,
    "echo": _values,
}
