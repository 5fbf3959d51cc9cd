"""Decides when two observations of MCP are the same: JSON with the same values is.

Fixed words replace what cannot be predicted: times, identifiers, and temporary folders. Equal
identifiers in one observation get the same word.
"""

import json
import re
from typing import NoReturn

from pydantic import JsonValue

from agentworld.domains.json_text import encode_strict_json
from agentworld.domains.volatile import mask_times

_IDENTIFIER = re.compile(
    r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{16,64}\b"
)
_TEMPORARY = re.compile(r"/(?:var/)?tmp/[^\s\"'\\,)\]}]+")


def canonical(observation: str) -> str:
    """The canonical form: JSON, whole or by line, in one form; text without spaces at line ends."""
    text = observation.strip()
    try:
        return _canonical_json(text)
    except (ValueError, RecursionError):
        return "\n".join(_canonical_line(line.rstrip()) for line in text.split("\n"))


def mask_volatile(observation: str) -> str:
    """Replaces times, identifiers and temporary folders by fixed words."""
    return _mask_identifiers(_TEMPORARY.sub("<path>", mask_times(observation)))


def is_same(one: str, other: str) -> bool:
    """Whether two observations are equal, apart from their form and from volatile parts."""
    return mask_volatile(canonical(one)) == mask_volatile(canonical(other))


def _canonical_line(line: str) -> str:
    try:
        return _canonical_json(line)
    except (ValueError, RecursionError):
        return line


def _canonical_json(text: str) -> str:
    if not text.startswith(("{", "[")):
        return text if "\n" not in text else _refuse(text)
    value: JsonValue = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse)
    return encode_strict_json(value)


def _distinct(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Raises ValueError for two equal keys, of which a JSON parser silently drops one."""
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else _refuse(pairs)


def _refuse(value: object) -> NoReturn:
    raise ValueError(f"{value!r:.80} has no canonical form")


def _mask_identifiers(text: str) -> str:
    words: dict[str, str] = {}

    def word_of(match: re.Match[str]) -> str:
        return words.setdefault(match[0], f"<id:{len(words) + 1}>")

    return _IDENTIFIER.sub(word_of, text)
