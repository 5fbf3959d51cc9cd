"""The rules of the tests' world: an engine's responses, and the results of steps.

The engine and the checker use it; the service does not know it. A response includes a MAC over the
engine, the version, every earlier message and a unique number, with a secret of the engine's: it
cannot be forged or reused.
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
"""Every engine's pinned and reported context length."""
_LONG = 300


class Outcome(NamedTuple):
    """The result of a step."""

    reward: float | None
    done: bool
    truncated: bool


def observation(secret: str, version: str, messages: Sequence[Message], nonce: str) -> str:
    """An engine's observation; `echo` prints its arguments, `cat long` more than fits in a row."""
    message = json.dumps([version, list(messages), nonce]).encode()
    mark = hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
    action = messages[-1]["content"]
    word = action.removeprefix("echo ") if action.startswith("echo ") else mark[:8]
    text = mark * _LONG if action.startswith("cat long") else word
    return f"{text}\n[0] ~ {nonce} {mark}"


def messages(
    system_prompt: str, start: str, control: str, turns: Sequence[tuple[str, str]], action: str
) -> list[Message]:
    """An engine's input for an action."""
    system = "\n".join(part for part in (system_prompt, start, control) if part)
    inputs = [{"role": "system", "content": system}]
    for past_action, past_observation in turns:
        inputs += [
            {"role": "user", "content": past_action},
            {"role": "assistant", "content": past_observation},
        ]
    return [*inputs, {"role": "user", "content": action}]


def outcome(output: str | None, limit: int, step: int, action: str, text: str) -> Outcome:
    """The result of a step: `output` is the task's expected output, null without a task."""
    if output is not None and action.startswith("echo ") and len(action) > len("echo "):
        return Outcome(float(text.rpartition("\n")[0] == output), done=True, truncated=False)
    if step >= limit:
        return Outcome(None if output is None else 0.0, done=True, truncated=True)
    return Outcome(None, done=False, truncated=False)
