"""Recordings to import: chats with tool calls; some are copies, near-duplicates, or echoes."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

_TOOLS = ("read", "write", "list", "search")
_NUM_WORDS = 20_000
_COPY_SHARE, _NEAR_SHARE, _ECHO_SHARE = 0.01, 0.02, 0.15
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}}

Messages = list[dict[str, object]]


def write_logs(path: Path, count: int, seed: int = 0) -> None:
    """One chat on each line; deterministic for a count and seed."""
    rng = random.Random(seed)
    tools = [{"type": "function", "function": {"name": t, "parameters": _SCHEMA}} for t in _TOOLS]
    with path.open("w") as file:
        for number, messages in enumerate(_chats(rng, count)):
            row = {"task_id": f"task-{number}", "tools": tools, "messages": messages}
            file.write(json.dumps(row) + "\n")


def vocabulary(seed: int = 0) -> list[str]:
    """Words of one to four syllables."""
    rng = random.Random(seed)
    syllables = [consonant + vowel for consonant in "bcdfgklmnprstv" for vowel in "aeiou"]
    return ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(_NUM_WORDS)]


def _chats(rng: random.Random, count: int) -> Iterator[Messages]:
    words, recent = vocabulary(), [[]]
    for _ in range(count):
        share = rng.random()
        if recent[0] and share < _COPY_SHARE:
            yield rng.choice(recent)
        elif recent[0] and share < _COPY_SHARE + _NEAR_SHARE:
            yield [*rng.choice(recent), *_turn(rng, words, 99)]
        else:
            chat = [{"role": "user", "content": " ".join(rng.choices(words, k=12))}]
            for number in range(rng.randint(4, 14)):
                chat += _turn(rng, words, number)
            recent = [*recent[-50:], chat] if recent[0] else [chat]
            yield chat


def _turn(rng: random.Random, words: list[str], number: int) -> Messages:
    path = "/".join(rng.choices(words, k=3))
    function = {"name": rng.choice(_TOOLS), "arguments": json.dumps({"path": path})}
    lines = (" ".join(rng.choices(words, k=8)) for _ in range(rng.randint(1, 10)))
    observation = path if rng.random() < _ECHO_SHARE else "\n".join(lines)
    call = {"id": f"call-{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": observation},
    ]
