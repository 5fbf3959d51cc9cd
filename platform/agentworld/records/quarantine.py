"""Records of a source that could not be imported."""

from agentworld.records.base import Record, Sentence


class Quarantined(Record):
    """Where a record stands, and why it is no episode."""

    file: Sentence
    place: Sentence
    """Such as `line 3`; empty for a whole file."""
    problem: Sentence
    """Its field, what is wrong with it, and the start of its value."""
