"""Records of a source that could not be imported."""

import re
from collections import Counter

from agentworld.records.base import Record, Sentence

QUARANTINE = "quarantine.ndjson"
"""Their file, beside the trajectories."""
OTHER = "other reasons"
_MOST_REASONS = 100
_MOST_LETTERS = 120
_VALUE = re.compile(r" \(got .*\Z", re.DOTALL)
_NUMBER = re.compile(r"\d+(?:,\d{3})*")


class QuarantinedRecord(Record):
    """The place of a record, and the reason why it is not a valid episode."""

    file: Sentence
    place: Sentence
    """Such as `line 3`; empty for a whole file."""
    problem: Sentence
    """The field, the problem, and the start of its value, without secrets."""

    @property
    def reason(self) -> str:
        """The problem without its record's value and numbers."""
        return _NUMBER.sub("N", _VALUE.sub("", self.problem))


def count_reason(counts: Counter[str], reason: str, count: int = 1) -> None:
    """Adds to the counts of reasons, with limits, because hostile records may have endless reasons
    of any length.

    Lone surrogates in a reason are escaped.
    """
    short = reason[:_MOST_LETTERS].encode("utf-8", "backslashreplace").decode()
    counts[short if short in counts or len(counts) < _MOST_REASONS else OTHER] += count
