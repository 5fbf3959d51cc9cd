r"""The actions of a terminal, in the form of Terminus: a JSON list of keystrokes with durations.

`[{"keystrokes": "ls\n", "duration": 0.5}]`. Keystrokes are typed as they are, a line feed as such,
as tmux does; keystrokes that are the name of a key (`C-c`, `Up`) press that key. Empty keystrokes
wait, and an empty list shows the screen.
"""

import json
import re
from collections.abc import Sequence
from math import isnan

from pydantic import Field, JsonValue, ValidationError

from agentworld.domains.base import ActionError
from agentworld.errors import InputError
from agentworld.records.base import Record, first_problem

_KEYS = {
    "Enter": "\r",
    "Escape": "\x1b",
    "Tab": "\t",
    "Space": " ",
    "BSpace": "\x7f",
    "Up": "\x1b[A",
    "Down": "\x1b[B",
    "Right": "\x1b[C",
    "Left": "\x1b[D",
}
_CONTROL = re.compile(r"C-([a-z\[\\\]^_@])")
_REFUSED = "Previous response had parsing errors:\n"
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)
MOST_CHARACTERS = 16_384
"""The most characters of one action's keystrokes together."""
MOST_SECONDS = 60.0
"""The longest duration, as in Terminus; a longer one is reduced to it."""
_USUAL_SECONDS = 1.0
"""The duration if none is given or it is not a number, as in Terminus."""


class Keys(Record):
    """Keystrokes, and how long to wait after them."""

    keystrokes: str
    duration: float = Field(default=_USUAL_SECONDS, ge=0, le=MOST_SECONDS)
    """Longest wait in seconds; it ends earlier if the shell waits for its next command."""

    @property
    def is_key(self) -> bool:
        """Whether the keystrokes are the name of a key."""
        return self.keystrokes in _KEYS or _CONTROL.fullmatch(self.keystrokes) is not None

    @property
    def text(self) -> bytes:
        """The bytes that a keyboard sends."""
        if control := _CONTROL.fullmatch(self.keystrokes):
            return bytes([ord(control[1].upper()) & 0x1F])
        return _KEYS.get(self.keystrokes, self.keystrokes).encode()


def parse_keys(action: str) -> tuple[Keys, ...]:
    """The keystrokes of an action; raises ActionError, with a message for the agent, if it has
    none. It also accepts a single command, an object with a list `commands` (Terminus), and texts
    instead of commands (an import of `commands.*.keystrokes`).
    """
    try:
        value = json.loads(_unfenced(action))
    except (ValueError, RecursionError) as error:
        raise ActionError("it is no JSON") from error
    keys = tuple(_keys(command) for command in _commands(value))
    if sum(len(command.keystrokes) for command in keys) > MOST_CHARACTERS:
        raise ActionError(f"it has more than {MOST_CHARACTERS} characters of keystrokes")
    return keys


def render_keys(keys: Sequence[Keys]) -> str:
    """The canonical form of recorded actions."""
    commands = [
        {"keystrokes": command.keystrokes, "duration": command.duration} for command in keys
    ]
    return json.dumps(commands, ensure_ascii=False)


def refusal(error: InputError) -> str:
    """The observation of an invalid action, in Terminus's words."""
    return (
        f"{_REFUSED}ERROR: {error}\n\nPlease fix these issues and provide a proper JSON response."
    )


def is_refusal(observation: str) -> bool:
    """Whether an observation is such a refusal."""
    return observation.startswith(_REFUSED)


def _unfenced(action: str) -> str:
    fenced = _FENCED.search(action)
    return fenced[1] if fenced else action


def _commands(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict) and "commands" in value:
        value = value["commands"]
    if isinstance(value, dict):
        return [value]
    if not isinstance(value, list):
        raise ActionError("it is no list of commands")
    return value


def _keys(command: JsonValue) -> Keys:
    if isinstance(command, str):
        command = {"keystrokes": command}
    if not isinstance(command, dict):
        raise ActionError(f"a command is no object: {command!r:.40}")
    try:
        # Terminus has further fields, as `is_blocking`, which are ignored here.
        keys = Keys.model_validate(
            {"keystrokes": command.get("keystrokes"), "duration": _seconds(command.get("duration"))}
        )
        keys.keystrokes.encode()  # a lone surrogate cannot be typed
    except ValidationError as error:
        raise ActionError(first_problem(error)) from error
    except UnicodeEncodeError as error:
        raise ActionError("its keystrokes are no Unicode text") from error
    return keys


def _seconds(duration: JsonValue) -> float:
    if isinstance(duration, bool) or not isinstance(duration, int | float) or isnan(duration):
        return _USUAL_SECONDS
    return min(max(0.0, float(duration)), MOST_SECONDS)
