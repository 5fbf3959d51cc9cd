"""Extracts the action from an agent's reply, by the options."""

import json
import re
from collections.abc import Iterator

from pydantic import JsonValue

from agentworld.data.importers.observations import ObservationOptions
from agentworld.data.importers.paths import EVERY, keys_at, value_of
from agentworld.errors import InputError

_MOST_TRIES = 64
_json = json.JSONDecoder()


class ReplyOptions(ObservationOptions):
    """The place of the action in a reply; without any option the whole reply is the action."""

    action_after: str = ""
    """The mark before an action, such as `<execute>` or `Action:`."""
    action_before: str = ""
    """The mark after an action, such as `</execute>`. If a reply has several such parts, the action
    is all of them, joined by line feeds. Without it the action goes from the first mark
    `action_after` to the end of the reply.
    """
    action_json: str = ""
    """Path of the action in a reply's JSON object, such as Terminus's `commands.*.keystrokes`. The
    import takes a text unchanged and any other value as JSON; `*` makes a list of all values.
    """
    no_action: str = ""
    """A mark of replies without an action, such as `<solution>`. The answer to such a reply is a
    judgement, not an observation.
    """


def action_in(reply: str, options: ReplyOptions) -> str:
    """The action without white space around it; empty if there is none."""
    if options.no_action and options.no_action in reply:
        return ""
    if options.action_json:
        return _in_json(reply, options.action_json)
    if options.action_after and options.action_before:
        marks = re.escape(options.action_after), re.escape(options.action_before)
        parts = re.findall("(.*?)".join(marks), reply, re.DOTALL)
        return "\n".join(part.strip() for part in parts).strip()
    return reply[_start(reply, options.action_after) :].strip()


def _start(reply: str, mark: str) -> int:
    start = reply.find(mark)
    return len(reply) if start < 0 else start + len(mark)


def _in_json(reply: str, path: str) -> str:
    for value in _objects(reply):
        try:
            values = [value_of(value, keys) for keys in keys_at(value, path)]
        except InputError:
            continue
        action: JsonValue = values if EVERY in path.split(".") else values[0]
        return action.strip() if isinstance(action, str) else json.dumps(action, ensure_ascii=False)
    return ""


def _objects(reply: str) -> Iterator[JsonValue]:
    """The JSON objects in a text; other text between them is skipped."""
    position = reply.find("{")
    for _ in range(_MOST_TRIES):
        if position < 0:
            return
        try:
            value, position = _json.raw_decode(reply, position)
        except (ValueError, RecursionError):
            position += 1
        else:
            yield value
        position = reply.find("{", position)
