"""How long answers took."""

from agentworld.records.base import Record


class Latency(Record):
    """Seconds until a step was answered, as its client saw them; null where none was."""

    p50_seconds: float | None
    p99_seconds: float | None
