"""How the world of these tests works: what an engine says, and what a step means.

The engine lives by it and the checker judges by it; the service does not know it. What is said
names the engine, the version, every message before it and a number drawn for it alone, under a
secret of the engine's: nobody else can say it, and nobody can say it elsewhere.
"""

import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import NamedTuple

Message = dict[str, str]

CLOSING = "echo .+"
"""The rule of every task: such an action ends it."""
ENGINE_VERSION = "0"
CONTEXT_TOKENS = 1_000_000
"""What every engine is pinned with, and tells of itself."""
_LONG = 300


class Outcome(NamedTuple):
    """What a step means for its episode."""

    reward: float | None
    done: bool
    truncated: bool


def observation(secret: str, version: str, messages: Sequence[Message], nonce: str) -> str:
    """What an engine shows; `echo` shows its words, `cat long` more than fits in a row."""
    told = json.dumps([version, list(messages), nonce]).encode()
    mark = hmac.new(secret.encode(), told, hashlib.sha256).hexdigest()
    action = messages[-1]["content"]
    word = action.removeprefix("echo ") if action.startswith("echo ") else mark[:8]
    shown = mark * _LONG if action.startswith("cat long") else word
    return f"{shown}\n[0] ~ {nonce} {mark}"


def messages(
    system_prompt: str, start: str, control: str, turns: Sequence[tuple[str, str]], action: str
) -> list[Message]:
    """What an engine reads before it answers an action."""
    system = "\n".join(part for part in (system_prompt, start, control) if part)
    read = [{"role": "system", "content": system}]
    for acted, shown in turns:
        read += [{"role": "user", "content": acted}, {"role": "assistant", "content": shown}]
    return [*read, {"role": "user", "content": action}]


def outcome(output: str | None, limit: int, step: int, action: str, shown: str) -> Outcome:
    """What a step means: `output` is what the task wants to be shown, null without a task."""
    if output is not None and action.startswith("echo ") and len(action) > len("echo "):
        return Outcome(float(shown.rpartition("\n")[0] == output), done=True, truncated=False)
    if step >= limit:
        return Outcome(None if output is None else 0.0, done=True, truncated=True)
    return Outcome(None, done=False, truncated=False)
