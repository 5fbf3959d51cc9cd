"""Decides when two observations of MCP are the same: JSON with the same values is.

Fixed words replace what cannot be predicted: times, identifiers, and temporary folders. Equal
identifiers in one observation get the same word.
"""

import json
import re
from functools import cache
from typing import NoReturn

from pydantic import JsonValue

from agentworld.domains.json_text import encode_strict_json
from agentworld.domains.volatile import mask_times

_IDENTIFIER = re.compile(
    r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{16,64}\b"
)
_EIGHT_DIGITS = re.compile(r"[0-9a-fA-F]{8}")
_TEMPORARY = re.compile(r"/(?:var/)?tmp/[^\s\"'\\,)\]}]+")


def canonical(observation: str) -> str:
    """The canonical form: JSON, whole or by line, in one form; text without spaces at line ends."""
    text = observation.strip()
    try:
        return _canonical_json(text)
    except (ValueError, RecursionError):
        return "\n".join(_canonical_line(line.rstrip()) for line in text.split("\n"))


def comparable(observation: str) -> str:
    """The form in which two observations are equal that differ only in volatile parts."""
    return mask_volatile(canonical(observation))


def mask_volatile(observation: str) -> str:
    """Replaces times, identifiers and temporary folders by fixed words."""
    return _mask_identifiers(_TEMPORARY.sub("<path>", mask_times(observation)))


def is_same(one: str, other: str) -> bool:
    """Whether two observations are equal, apart from their form and from volatile parts."""
    if one == other:
        return True
    if _has_other_line(one.strip(), other.strip()):
        return False
    return comparable(one) == comparable(other)


def _has_other_line(one: str, other: str) -> bool:
    """Whether a line differs in two texts of several values: fast, and it finds most mistakes.

    It leaves equal lines out, so it does not find an identifier that stands for two others.
    """
    if not ("\n" in one and "\n" in other) or _is_json(one) or _is_json(other):
        return False
    lines, others = one.split("\n"), other.split("\n")
    return len(lines) != len(others) or any(
        mask_volatile(_canonical_line(line.rstrip()))
        != mask_volatile(_canonical_line(same.rstrip()))
        for line, same in zip(lines, others, strict=True)
        if line != same
    )


def _is_json(text: str) -> bool:
    try:
        _canonical_json(text)
    except (ValueError, RecursionError):
        return False
    return True


def _canonical_line(line: str) -> str:
    try:
        return _canonical_json(line)
    except (ValueError, RecursionError):
        return line


def _canonical_json(text: str) -> str:
    if not text.startswith(("{", "[")):
        return text if "\n" not in text else _refuse(text)
    value: JsonValue = _decoder().decode(text)
    return encode_strict_json(value)


@cache
def _decoder() -> json.JSONDecoder:
    """Made once: to make one takes as long as to read a short line."""
    return json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_refuse)


def _distinct(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Raises ValueError for two equal keys, of which a JSON parser silently drops one."""
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else _refuse(pairs)


def _refuse(value: object) -> NoReturn:
    raise ValueError(f"{value!r:.80} has no canonical form")


def _mask_identifiers(text: str) -> str:
    if not _EIGHT_DIGITS.search(text):  # most texts have no identifier, and this is faster
        return text
    words: dict[str, str] = {}

    def word_of(match: re.Match[str]) -> str:
        return words.setdefault(match[0], f"<id:{len(words) + 1}>")

    return _IDENTIFIER.sub(word_of, text)
