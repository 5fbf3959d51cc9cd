"""A teacher's traces for SFT, their selection and their cost."""

from collections.abc import Iterable

from agentworld.records.base import Digest, JsonObject, Record
from agentworld.records.endpoint_usage import EndpointUsage


class Trace(Record):
    """A thought and an observation that replace a turn's own (Qwen-AgentWorld section 3.3)."""

    trajectory: Digest
    """The sample of the pool `sft` that has the history."""
    turn: int
    """The index of the turn in the sample, from 0."""
    domain: str
    thought: str
    observation: str
    score: float
    """The judge's mean score, of 1 to 5."""


class TraceSet(Record):
    """The traces of one data set; later records refer to them by this record's digest."""

    data: Digest
    """The data set that they belong to."""
    recipe: JsonObject
    """The teacher, the judge and their settings; without addresses."""
    file: str
    content: Digest
    """The digest of the file."""
    num_traces: int


class TraceYield(Record):
    """The number of traces at each stage (the columns of Qwen-AgentWorld's table 4), and the
    reasons for losses.

    Each prompt is selected, rejected or a hole.
    """

    prompts: int = 0
    """Turns that the teacher predicted; the paper's candidates."""
    rollouts: int = 0
    """Responses with a thought and an observation."""
    unusable: int = 0
    """Responses that were cut off, or have no thought or no observation."""
    unanswered: int = 0
    """Requests that the teacher's endpoint did not answer."""
    scored: int = 0
    """Rollouts with a score."""
    passed: int = 0
    """Rollouts whose score reaches the threshold."""
    selected: int = 0
    """Prompts with a trace."""
    rejected: int = 0
    """Prompts whose best rollout is under the threshold."""
    holes: int = 0
    """Prompts without a decision: no rollout has a score, or two could not be compared."""
    turns: int = 0
    """The turns of all traces, with those of their histories."""
    teacher: EndpointUsage = EndpointUsage()
    judge: EndpointUsage = EndpointUsage()

    @property
    def retained(self) -> float | None:
        """Share of the prompts that have a trace; null without prompts."""
        return self.selected / self.prompts if self.prompts else None


class TraceReport(Record):
    """The yields by domain."""

    domains: dict[str, TraceYield]
    total: TraceYield


def total_yield(yields: Iterable[TraceYield]) -> TraceYield:
    """The sum of yields; unknown in one is unknown in the sum."""
    sums = TraceYield()
    for item in yields:
        usage = {
            name: getattr(sums, name).plus(getattr(item, name)) for name in ("teacher", "judge")
        }
        counts = {
            name: getattr(sums, name) + getattr(item, name)
            for name in TraceYield.model_fields
            if name not in usage
        }
        sums = TraceYield(**counts, **usage)
    return sums
