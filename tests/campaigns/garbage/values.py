"""Garbage: values of any type, depth, size and encoding, as a row or a file may hold them."""

import json
import random
from collections.abc import Callable

_NAMES = (
    "",
    " ",
    "агент",
    "a\u200bgent",
    "\x1b[2J\x1b]52;c;ZXZpbA==\x07",
    "\u202egpj.exe",
    "a\nb\r\tc",
    "../../etc/passwd",
    "'; DROP TABLE runs; --",
    'a"b`c\\',
    "{{ 7 * 7 }}",
    "%s%n{0}",
    "sha256:" + "0" * 63,
    "sha256:" + "0" * 64,
    "9999-12-31T23:59:59.999999+00:00",
    "2026-13-45T99:99:99",
    "NaN",
    "null",
    "Max retries exceeded with url",
)
_NUMBERS = (
    *(0, 1, -1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)),
    *(0.1, -0.0, 1e308, 5e-324, float("inf"), float("-inf"), float("nan")),
)
_DEPTHS = (3, 150, 250, 900, 1_100, 200_000)
_SIZES = (1, 100, 10_000, 1_000_000, 4_000_000)


def name(chance: random.Random) -> str:
    """A text that could be a name."""
    choice = chance.choice(_NAMES)
    return choice * chance.choice((1, 1, 1, 1_000)) if choice else choice


def number(chance: random.Random) -> float:
    return chance.choice(_NUMBERS)


def nested(chance: random.Random) -> str:
    """JSON, or its beginning, of some depth."""
    depth, opening, closing = chance.choice(_DEPTHS), *chance.choice(("[]", ('{"a":', "}")))
    return opening * depth + chance.choice(("", "0" + closing * depth))


def json_text(chance: random.Random) -> str:
    """Valid JSON of unexpected content."""
    options: list[object] = [None, True, [], {}, [[]], {"": ""}, {"gate": None}, [1, "a", None]]
    long = ("1" * 5_000, "1e999", '"\\ud800"', '{"a": 1, "a": 2}', "[1, 2,", '"')
    return chance.choice([*map(json.dumps, options), *long])


def large(chance: random.Random) -> str:
    return chance.choice("xé\0") * chance.choice(_SIZES)


def no_text(chance: random.Random) -> bytes:
    """Bytes that are not UTF-8."""
    text = name(chance) or "a"
    encoded = (
        text.encode("utf-16", "surrogatepass"),
        text.encode("utf-32", "surrogatepass"),
        text.encode("latin-1", "replace") + b"\xe9",
        b"\xff\xfe",
        b"\xed\xb3\xbf",
        b"\xf8\x88\x80\x80\x80",
        chance.randbytes(chance.choice((1, 16, 4_096))),
    )
    return chance.choice(encoded)


_TEXTS: tuple[Callable[[random.Random], str], ...] = (name, nested, json_text, large)


def text(chance: random.Random) -> str:
    return chance.choice(_TEXTS)(chance)


def content(chance: random.Random) -> bytes:
    """The content of a whole file."""
    if chance.random() < 0.3:
        return no_text(chance)
    return text(chance).encode("utf-8", "surrogatepass")
