"""The tags of turns of a terminal episode: the kind of their keys, and what they show.

Words alone decide whether a turn shows an earlier change (the tag `history`): it does if a word
that was typed in an earlier turn is new on the screen, and is not in the turn's own keys.
"""

import re
from collections.abc import Sequence

from agentworld.domains.base import ActionError
from agentworld.domains.terminal.keys import Keys, parse_keys
from agentworld.domains.terminal.transcript import PROMPT, new_lines
from agentworld.domains.terminal.verifier import is_failure
from agentworld.domains.word_tags import word_tags
from agentworld.records.trajectory import Turn

FAILURE = "failure"
"""Tag of a turn whose last command failed."""
MALFORMED = "malformed"
"""Tag of a turn whose action is not a list of keystrokes."""
WAIT = "wait"
"""Tag of a turn that types nothing."""
KEY = "key"
"""Tag of a turn that presses a named key."""
INSIDE = "program"
"""Tag of a turn after which a program has the terminal instead of the shell."""

_WORD = re.compile(r"\w{3,}")


def tags_of(turns: Sequence[Turn]) -> list[frozenset[str]]:
    """The tags of each turn of an episode."""
    earlier_words: set[str] = set()
    screen = ""
    results = []
    for turn in turns:
        keys = keys_of(turn.action)
        own = {word for command in keys or () for word in _WORD.findall(command.keystrokes)}
        lines = [line for line in new_lines(screen, turn.observation) if not PROMPT.match(line)]
        new_words = set(_WORD.findall("\n".join(lines))) - own
        tags = word_tags(
            turn,
            has_output=bool(new_words or lines[1:]),
            shows_history=bool(new_words & earlier_words),
        )
        results.append(frozenset(tags | _kinds(turn, keys)))
        earlier_words |= own
        screen = screen if keys is None else turn.observation
    return results


def keys_of(action: str) -> tuple[Keys, ...] | None:
    """The keystrokes of an action; null if it has none."""
    try:
        return parse_keys(action)
    except ActionError:
        return None


def _kinds(turn: Turn, keys: tuple[Keys, ...] | None) -> set[str]:
    if keys is None:
        return {MALFORMED, FAILURE}
    is_inside = not PROMPT.match(turn.observation.rpartition("\n")[2])
    tags = {
        WAIT: not any(command.keystrokes for command in keys),
        KEY: any(command.is_key for command in keys),
        INSIDE: is_inside,
        FAILURE: is_failure(turn.observation),
    }
    return {tag for tag, holds in tags.items() if holds}
