"""Parses verdicts from a judge's text: the requested JSON, or what can be recovered from it.

The attempts have the order of the Qwen-AgentWorld evaluation's parser.
"""

import json
import re
from collections.abc import Iterator
from typing import Literal

from agentworld.domains.rubric import BEST, RubricScore

Preference = Literal["A", "B", "tie"]
"""Which of two predictions is better, by the names in the judge's prompt."""

_THOUGHT = re.compile(r"^.*</think>", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"```[a-z]*\s*(.*?)```", re.DOTALL)
_TRAILING_COMMA = re.compile(r",\s*([}\]])")
_SINGLE_QUOTED = re.compile(r"'([^'\n]*)'(?=\s*[:,}\]])")
_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_]\w*)(\s*:)")
_ANY_SCORE = re.compile(
    rf"\b({'|'.join(RubricScore._fields)})\b['\"]?\s*[:=]\s*['\"]?(\d+(?:\.\d+)?)", re.IGNORECASE
)

_PREFERENCES: dict[str, Preference] = {"a": "A", "b": "B", "tie": "tie"}


def parse_verdict(text: str) -> RubricScore | None:
    """The scores in a judge's answer, clamped to 1..5; null if none can be read."""
    text = _THOUGHT.sub("", text)
    for candidate in _candidates(text):
        score = _score_of(_load(candidate))
        if score:
            return score
    return _score_of({name.lower(): value for name, value in _ANY_SCORE.findall(text)})


def parse_preference(text: str) -> Preference | None:
    """The preference in a judge's answer; null if none can be read.

    The last JSON object with a preference counts; prose does not, because it names both.
    """
    for candidate in reversed(list(_objects(_THOUGHT.sub("", text)))):
        value = _load(candidate)
        name = str(value.get("better")).strip().lower() if isinstance(value, dict) else ""
        if preference := _PREFERENCES.get(name):
            return preference
    return None


def _candidates(text: str) -> Iterator[str]:
    blocks = _FENCED.findall(text)
    objects = list(_objects(text))
    yield from (block for block in reversed(blocks) if "scores" in block)
    yield from sorted(
        (candidate for candidate in objects if "scores" in candidate), key=len, reverse=True
    )
    yield from reversed(objects)


def _objects(text: str) -> Iterator[str]:
    """Every text between matching braces; braces in strings count too."""
    open_places: list[int] = []
    for index, character in enumerate(text):
        if character == "{":
            open_places.append(index)
        elif character == "}" and open_places:
            yield text[open_places.pop() : index + 1]


def _load(text: str) -> object:
    for attempt in (text, _repair(text)):
        try:
            return json.loads(attempt)
        except json.JSONDecodeError:
            continue
    return None


def _repair(text: str) -> str:
    text = _SINGLE_QUOTED.sub(r'"\1"', text)
    text = _BARE_KEY.sub(r'\1"\2"\3', text)
    return _TRAILING_COMMA.sub(r"\1", text)


def _score_of(value: object) -> RubricScore | None:
    if not isinstance(value, dict):
        return None
    scores = value.get("scores", value)
    if not isinstance(scores, dict):
        return None
    score = RubricScore(*(_number(scores.get(name)) for name in RubricScore._fields))
    return score if any(score) else None


def _number(value: object) -> int:
    """A score as a whole number from 1 to 5; 0 if it cannot be read. `4/5` is 4."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0
    try:
        number = float(value.partition("/")[0] if isinstance(value, str) else value)
        return max(1, min(BEST, round(number)))
    except (ValueError, OverflowError):
        return 0
