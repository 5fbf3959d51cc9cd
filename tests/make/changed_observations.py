"""Changes of an observation that a domain's verifier must tolerate, and changes that are wrong.

They work on any domain's text: on its JSON, whole or by line, or else on its words and lines. The
parts that differ in every run (`Form`) are defined here independently, so that a verifier that
forgives too much is noticed as well as one that forgives too little.
"""

import json
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

_DATE, _TIME_OF_DAY = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


class Form(NamedTuple):
    """A part of an observation that differs in every run, with a generator of other values."""

    pattern: re.Pattern[str]
    rewrite: Callable[[Random, str], str]


def _other_time(rng: Random, text: str) -> str:
    date = f"{rng.randint(2010, 2040)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    return _other_time_of_day(rng, re.sub(_DATE, date, text))


def _other_time_of_day(rng: Random, text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        seconds = _other_digits(rng, match[0][len("00:00") :])
        return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}{seconds}"

    return re.sub(_TIME_OF_DAY, replace, text, count=1)  # a zone such as +02:00 stays


def _other_clock(rng: Random, text: str) -> str:
    text = re.sub("|".join(_DAYS), rng.choice(_DAYS), text)
    text = re.sub(
        rf"({'|'.join(_MONTHS)}) [ \d]\d", f"{rng.choice(_MONTHS)} 1{rng.randint(0, 9)}", text
    )
    return _other_time_of_day(rng, text)


def _other_digits(rng: Random, text: str) -> str:
    return "".join(rng.choice("012345") if letter.isdigit() else letter for letter in text)


def _other_id(rng: Random, text: str) -> str:
    alphabets = {True: string.digits, False: "abcdef"}
    return "".join(
        rng.choice(alphabets[letter.isdigit()]) if letter.isalnum() else letter for letter in text
    )


def _other_letters(rng: Random, text: str) -> str:
    """Replaces the letters and digits after the last slash or point."""
    start = max(text.rfind("/"), text.rfind(".")) + 1
    return text[:start] + "".join(rng.choice(string.ascii_letters) for _ in text[start:])


def _other_process(rng: Random, text: str) -> str:
    return re.sub(r"\d+$", str(rng.randint(2, 99_999)), text)


FORMS: Mapping[str, Form] = {
    "time": Form(
        re.compile(rf"\b{_DATE}[T ]{_TIME_OF_DAY}(?:Z|[+-]\d\d:\d\d| [+-]\d{{4}}| UTC)?"),
        _other_time,
    ),
    "clock": Form(
        re.compile(
            rf"\b(?:(?:{'|'.join(_DAYS)}) )?(?:{'|'.join(_MONTHS)}) [ \d]\d {_TIME_OF_DAY}"
            r"(?: [A-Z]{3} \d{4})?\b"
        ),
        _other_clock,
    ),
    "id": Form(
        re.compile(
            r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
            r"|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{16,64}\b"
        ),
        _other_id,
    ),
    "path": Form(re.compile(r"/(?:var/)?tmp/[\w-]+"), _other_letters),
    "name": Form(re.compile(r"\btmp\.[A-Za-z0-9]{10}\b"), _other_letters),  # as mktemp draws it
    "process": Form(re.compile(r"^\[\d+\][+-]? +\d+(?=$| +Running)", re.MULTILINE), _other_process),
    "row": Form(  # of ps
        re.compile(r"^ *\d+ (?:pts/\d+|\?) +\d\d:\d\d:\d\d(?= )", re.MULTILINE), _other_digits
    ),
}
"""By name, as `RUNTIME_FORMS` has them for each domain."""

Forms = Sequence[Form]


def tolerated_change(rng: Random, text: str, forms: Forms) -> str | None:
    """Another run's observation, with a consistent replacement of equal texts; null if it has no
    form.
    """
    changed = text
    for form in forms:
        values: dict[str, str] = {}

        def draw(match: re.Match[str], form: Form = form, values: dict[str, str] = values) -> str:
            return values.setdefault(match[0], form.rewrite(rng, match[0]))

        changed = form.pattern.sub(draw, changed)
    return changed if changed != text else None


def meaning(text: str, forms: Forms) -> str:
    """The meaning of an observation, without the format of JSON and without runtime metadata."""
    for form in forms:
        text = form.pattern.sub("<runtime>", text)
    documents = _documents(text)
    for start, end in reversed(documents):
        tree = json.loads(text[start:end])
        text = text[:start] + json.dumps(tree, sort_keys=True) + text[end:]
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


class Case(NamedTuple):
    """A true observation, and the sources of wrong ones."""

    truth: str
    previous: str | None
    """The previous turn's observation; null for the first one."""
    stale: str | None
    """The observation of the same action without an earlier change."""
    is_failure: bool
    other_outcome: str | None
    """The observation of a failure for a success, and the reverse."""


def other_value(rng: Random, text: str, forms: Forms) -> str | None:
    """Changes one scalar of JSON, or one word."""
    if _documents(text):
        return _in_document(rng, text, lambda tree: _change_leaf(rng, tree, forms))
    return _in_match(rng, text, re.finditer(r"\w+", text), forms)


def other_key(rng: Random, text: str, forms: Forms) -> str | None:
    """Changes one key of JSON, or one name before a colon or an equals sign."""
    if _documents(text):
        return _in_document(rng, text, lambda tree: _rename_key(rng, tree))
    lines = re.finditer(r"^.*[^\s=:]+(?=: |=)", text, re.MULTILINE)
    names = (re.compile(r"[^\s=:]+$").search(text, match.start(), match.end()) for match in lines)
    return _in_match(rng, text, filter(None, names), forms)


def other_order(rng: Random, text: str, _: Forms) -> str | None:
    """Swaps two neighbors in a list of JSON, or two lines."""

    def swap(values: list[Any]) -> bool:
        pairs = enumerate(pairwise(values))
        indices = [index for index, (a, b) in pairs if a != b and a and b]
        if indices:
            index = rng.choice(indices)
            values[index : index + 2] = values[index + 1], values[index]
        return bool(indices)

    def swap_in(tree: Any) -> bool:
        return any(swap(values) for values in _shuffled(rng, _lists(tree)))

    lines = text.split("\n")
    return _in_document(rng, text, swap_in) or ("\n".join(lines) if swap(lines) else None)


def missing_line(rng: Random, text: str, _: Forms) -> str | None:
    """Removes one field or element of JSON, or one line that is not blank."""

    def drop(tree: Any) -> bool:
        places = list(_places(tree))
        if places:
            container, key = rng.choice(places)
            del container[key]
        return bool(places)

    lines = text.split("\n")
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    if changed := _in_document(rng, text, drop):
        return changed
    if len(numbers) < 2:
        return None
    del lines[rng.choice(numbers)]
    return "\n".join(lines)


WRONG: Mapping[str, Callable[[Random, Case, Forms], str | None]] = {
    "value": lambda rng, case, forms: other_value(rng, case.truth, forms),
    "key": lambda rng, case, forms: other_key(rng, case.truth, forms),
    "order": lambda rng, case, forms: other_order(rng, case.truth, forms),
    "missing_line": lambda rng, case, forms: missing_line(rng, case.truth, forms),
    "stale_state": lambda _rng, case, _forms: case.stale,
    "success_for_error": lambda _rng, case, _: case.other_outcome if case.is_failure else None,
    "error_for_success": lambda _rng, case, _: None if case.is_failure else case.other_outcome,
    "copied_state": lambda _rng, case, _forms: case.previous,
}
"""Functions by kind that return a wrong observation for a true one; null if the kind does not
apply.
"""


def wrong_change(kind: str, rng: Random, case: Case, forms: Forms) -> str | None:
    """Null also if only runtime metadata would change."""
    changed = WRONG[kind](rng, case, forms)
    if changed is None or meaning(changed, forms) == meaning(case.truth, forms):
        return None
    return changed


def _documents(text: str) -> list[tuple[int, int]]:
    """The positions of JSON objects and lists: the whole text, or each line that is one."""
    if _is_document(text):
        return [(0, len(text))]
    lines = re.finditer(r"^.+$", text, re.MULTILINE)
    return [match.span() for match in lines if _is_document(match[0])]


def _is_document(text: str) -> bool:
    try:
        return text.lstrip()[:1] in ("{", "[") and isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


def _in_document(rng: Random, text: str, change: Callable[[Any], bool]) -> str | None:
    """The text with one of its documents changed in place; null if none can be."""
    for start, end in _shuffled(rng, _documents(text)):
        tree = json.loads(text[start:end])
        if change(tree):
            return text[:start] + json.dumps(tree, separators=(",", ":")) + text[end:]
    return None


def _in_match(rng: Random, text: str, matches: Iterator[re.Match[str]], forms: Forms) -> str | None:
    """Changes one of these words that is not runtime metadata."""
    runtime = [match.span() for form in forms for match in form.pattern.finditer(text)]
    spans = [
        match.span()
        for match in matches
        if not any(match.start() < end and start < match.end() for start, end in runtime)
    ]
    if not spans:
        return None
    start, end = rng.choice(spans)
    return text[:start] + _other_word(rng, text[start:end]) + text[end:]


def _other_word(rng: Random, word: str) -> str:
    """A word of the same length with one letter or digit changed."""
    indices = [index for index, letter in enumerate(word) if letter.isalnum()]
    index = rng.choice(indices or [0])
    letters = string.digits if word[index : index + 1].isdigit() else string.ascii_lowercase
    letter = rng.choice([letter for letter in letters if letter != word[index : index + 1].lower()])
    return word[:index] + letter + word[index + 1 :]


def _change_leaf(rng: Random, tree: Any, forms: Forms) -> bool:
    for container, key in _shuffled(rng, _places(tree)):
        other = _other_leaf(rng, container[key], forms)
        if other is not None:
            container[key] = other
            return True
    return False


def _other_leaf(rng: Random, value: Any, forms: Forms) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + rng.randint(1, 9)
        case str() if value:
            return _in_match(rng, value, re.finditer(r"\w+", value), forms)
        case str() | None:
            return "kolu"
    return None


def _rename_key(rng: Random, tree: Any) -> bool:
    places = [(node, key) for node, key in _places(tree) if isinstance(node, dict)]
    if not places:
        return False
    node, key = rng.choice(places)
    pairs = [
        (_other_word(rng, name) if name == key else name, value) for name, value in node.items()
    ]
    node.clear()
    node.update(pairs)
    return True


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Each container with each of its keys or indices."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(pairs):
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _lists(tree: Any) -> Iterator[list[Any]]:
    if isinstance(tree, list):
        yield tree
    for container, key in _places(tree):
        if isinstance(container[key], list):
            yield container[key]


def _shuffled(rng: Random, values: Any) -> list[Any]:
    values = list(values)
    return rng.sample(values, len(values))
