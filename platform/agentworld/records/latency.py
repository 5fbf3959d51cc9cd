"""Response times."""

from agentworld.records.base import Record


class Latency(Record):
    """Seconds until a step was answered, measured by its client; null without steps."""

    p50_seconds: float | None
    p99_seconds: float | None
