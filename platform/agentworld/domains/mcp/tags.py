"""The tags of turns of an MCP episode: the tools that a turn calls, and what it shows.

Words alone decide whether a turn shows an earlier change (the tag `history`). It does if an earlier
writing call that did not fail has an argument with the same name and value, or has a text argument
that is a word of this turn's observation.
"""

import re
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from agentworld.domains.base import Call, TurnKind
from agentworld.domains.calls import parse_calls
from agentworld.domains.mcp.observation import is_failure
from agentworld.domains.turn_kinds import KIND_TAGS, kind_of_name, strongest_kind
from agentworld.domains.word_tags import word_tags
from agentworld.records.tool import Tools
from agentworld.records.trajectory import Turn

FAILURE = "failure"
"""Tag of a turn that the protocol refused, or whose tool returned an error."""
MALFORMED = "malformed"
"""Tag of a turn whose action is not a call of a tool."""

_WORD = re.compile(r"\w+")

_Pairs = set[tuple[str, str]]


def tags_of(tools: Tools, turns: Sequence[Turn]) -> list[frozenset[str]]:
    """The tags of each turn of an episode that had these tools."""
    effects = {tool.name: tool.effect for tool in tools}
    writes: _Pairs = set()
    results = []
    for turn in turns:
        calls = parse_calls(turn.action)
        kinds = [_kind(call, effects.get(call.name, "")) for call in calls]
        kind = strongest_kind(kinds)
        tags = {call.name for call in calls} or {MALFORMED}
        if kind and all(effects.get(call.name) for call in calls):
            tags.add(KIND_TAGS[kind])
        results.append(frozenset(tags | _visible_tags(turn, calls, writes)))
        if not is_failure(turn.observation):
            writing = [call for call, kind in zip(calls, kinds, strict=True) if kind == "write"]
            writes.update(pair for call in writing for pair in _arguments(call))
    return results


def _visible_tags(turn: Turn, calls: Sequence[Call], writes: _Pairs) -> set[str]:
    tags = word_tags(
        turn,
        has_output=bool(turn.observation.strip()),
        shows_history=_shows_any(writes, calls, turn.observation),
    )
    return tags | {FAILURE} if is_failure(turn.observation) else tags


def _kind(call: Call, effect: str) -> TurnKind | None:
    """By the tool's annotation. `readOnlyHint` does not separate computations; the verb does."""
    verb = kind_of_name(call.name)
    if effect == "read":
        return "computation" if verb == "computation" else "read"
    return "write" if effect == "write" else verb


def _shows_any(writes: _Pairs, calls: Sequence[Call], observation: str) -> bool:
    arguments = {pair for call in calls for pair in _arguments(call)}
    texts = {value for _, value in writes if not value.isdigit()}
    return bool(arguments & writes or texts.intersection(_WORD.findall(observation)))


def _arguments(call: Call) -> Iterator[tuple[str, str]]:
    """The arguments that can identify an object: texts and integers, also in lists."""
    for name, value in call.arguments.items():
        for part in value if isinstance(value, list) else [value]:
            if _is_key(part):
                yield name, str(part)


def _is_key(value: JsonValue) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
