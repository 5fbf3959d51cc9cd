"""Derives from an action's words whether it reads, writes or computes, for any tool.

The first listed verb in a tool's name decides. If an action has several calls, or a line several
commands, one write makes the turn a write. If no word is listed, the kind is unknown.
"""

import re
from collections.abc import Collection, Sequence

from agentworld.domains.base import Call, TurnKind
from agentworld.domains.calls import parse_calls

_READ = """
browse check count describe diff display download fetch find get inspect list load lookup open peek
query read retrieve search select show stat status test view whoami
cat file grep head less ls more pwd rg tail tree which env printenv
"""
_WRITE = """
add append apply approve archive assign book buy cancel change clear close commit copy create delete
disable drop edit enable exchange export grant import insert install kill merge modify move patch
pay post publish push put refund register remove rename replace reserve reset return revoke save
send set start stop submit transfer uninstall unset update upload upsert write
cd chmod chown cp ln mkdir mv pip rm rmdir sed tee touch
"""
_COMPUTATION = """
calculate calc compare compute convert encode decode eval evaluate format hash parse plan reason
solve sort sum think transform validate verify
awk bc cut expr seq tr uniq wc
"""
_VERBS: dict[str, TurnKind] = {
    **dict.fromkeys(_READ.split(), "read"),
    **dict.fromkeys(_WRITE.split(), "write"),
    **dict.fromkeys(_COMPUTATION.split(), "computation"),
}
KIND_TAGS: dict[TurnKind, str] = {
    "read": "annotated read",
    "write": "annotated write",
    "computation": "annotated computation",
}
"""Tags of a turn whose tools' annotations say what it does."""

_WORDS_OF_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_FIRST_NAME = re.compile(r"\s*([A-Za-z_][\w.-]*)")
_PIECES = re.compile(r"&&|\|\||[;|\n]")
_INTO_FILE = re.compile(r"(?<![&=<-])>>?\s*(?![&>=\s]|/dev/null)")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_COMMAND_ARGUMENTS = ("command", "cmd")
_NO_EFFECT = {"cd", "sleep", "true"}
"""Programs that do not count if the line has other programs."""


def kind_of_turn(action: str, tags: Collection[str]) -> TurnKind | None:
    """By the turn's tag of a kind; without one, by the words of its action."""
    annotated = (kind for kind, tag in KIND_TAGS.items() if tag in tags)
    return next(annotated, None) or kind_of_action(action)


def kind_of_action(action: str) -> TurnKind | None:
    """The kind of calls of tools, of a call such as `search[word]`, or of a command."""
    calls = parse_calls(action)
    if calls:
        return strongest_kind([_kind_of_call(call) for call in calls])
    return kind_of_command(action)


def kind_of_name(name: str) -> TurnKind | None:
    """The kind of a tool, by the first listed verb in its name."""
    words = (word.lower() for word in _WORDS_OF_NAME.findall(name))
    return next((_VERBS[word] for word in words if word in _VERBS), None)


def kind_of_command(line: str) -> TurnKind | None:
    """The kind of a line of commands, by its programs and its redirections."""
    line = _QUOTED.sub("''", line)
    if _INTO_FILE.search(line):
        return "write"
    pieces = [piece for piece in _PIECES.split(line) if piece.strip()]
    decisive = [piece for piece in pieces if _program(piece) not in _NO_EFFECT]
    return strongest_kind([_kind_of_program(piece) for piece in decisive or pieces])


def _kind_of_call(call: Call) -> TurnKind | None:
    """The kind of a call; a tool that runs a command has the kind of the command."""
    for name in _COMMAND_ARGUMENTS:
        if isinstance(command := call.arguments.get(name), str):
            return kind_of_command(command)
    return kind_of_name(call.name)


def _kind_of_program(piece: str) -> TurnKind | None:
    program = _program(piece)
    if program == "echo":
        return "read" if "$" in piece else "computation"
    return "read" if piece.strip().startswith("[") else kind_of_name(program)


def _program(piece: str) -> str:
    match = _FIRST_NAME.match(piece)
    return match[1] if match else ""


def strongest_kind(kinds: Sequence[TurnKind | None]) -> TurnKind | None:
    """`write` if any kind is a write; otherwise null if any is unknown or there is none."""
    if "write" in kinds:
        return "write"
    if None in kinds or not kinds:
        return None
    return "computation" if "computation" in kinds else "read"
