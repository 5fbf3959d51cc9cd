"""Finds the secrets in one text, and replaces them by placeholders."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain

from pydantic import ValidationError

from agentworld.data.labelled_secrets import LABELS, find_labelled
from agentworld.data.secret_rules import RULES, Secret
from agentworld.records.base import first_problem

_LONGEST_SECRET = 4_000
"""In characters."""


class Placeholders:
    """The placeholders of the secrets in texts that belong together."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.counts: Counter[str] = Counter()
        """How many different secrets there are of each kind."""
        self._placeholders: dict[str, str] = {}
        # Each text by itself: what begins in one and ends in the next is in neither.
        for secret in chain.from_iterable(map(find_secrets, texts)):
            if secret.value not in self._placeholders:
                self.counts[secret.kind] += 1
                placeholder = f"[REDACTED:{secret.kind}:{self.counts[secret.kind]}]"
                self._placeholders[secret.value] = placeholder
        longest_first = sorted(self._placeholders, key=lambda value: (-len(value), value))
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def replace(self, text: str) -> str:
        """A text without these secrets."""
        return self._pattern.sub(lambda match: self._placeholders[match[0]], text)

    def move(self, text: str, place: int) -> int:
        """Maps a place in a text to its place in the text without secrets."""
        moved = place
        for match in self._pattern.finditer(text):
            if match.start() >= place:
                break
            moved += len(self._placeholders[match[0]]) - len(match[0])
            if match.end() > place:  # within a secret: behind its placeholder
                return moved + match.end() - place
        return moved


def redact_text(text: str) -> str:
    """One text without its secrets."""
    return Placeholders([text]).replace(text)


def redact_start(text: str, length: int) -> str:
    """The start of a text without its secrets, for a sentence; redacts before it cuts."""
    return redact_text(text[: length + _LONGEST_SECRET])[:length]


def redacted_problem(error: ValidationError) -> str:
    """The first problem of a recorded value, without the secrets in the value."""
    return first_problem(error, redact_text)


def find_secrets(text: str) -> list[Secret]:
    """The secrets in a text, in order; if two overlap, the one of the earlier rule."""
    folded = _fold(text)
    secrets = [
        secret
        for rule in RULES
        if any(literal in folded for literal in rule.literals)
        for secret in rule.find(text)
    ]
    if any(label in folded for label in LABELS):
        secrets += (Secret(*span) for span in find_labelled(text, folded))
    return sorted(secrets, key=lambda secret: secret.start) if secrets else secrets


def _fold(text: str) -> str:
    """The text in lower case, with the same length."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)
