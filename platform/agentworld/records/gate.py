"""Gates: thresholds for a report's figures, and their results."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import ValidationError

from agentworld.errors import InputError
from agentworld.records.base import Digest, Record, ShortText


class Gate(Record):
    """A threshold for a figure."""

    metric: ShortText
    """A figure's name in a report, such as `live_gain` or `exact_match`."""
    least: float
    """The minimum of the figure."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses METRIC=LEAST; raises InputError."""
        metric, _, least = text.rpartition("=")
        try:
            return cls.model_validate({"metric": metric, "least": least})
        except ValidationError as error:
            raise InputError(
                f"{text!r} is not a gate; write METRIC=LEAST, as live_gain=0.2, with the name of"
                " a figure and a number"
            ) from error

    def judge(self, figures: Mapping[str, float]) -> "GateResult":
        """Compares this gate with a report's figures."""
        return GateResult(metric=self.metric, least=self.least, value=figures.get(self.metric))


class GateResult(Gate):
    """A gate with the report's figure."""

    value: float | None = None
    """Null if the report does not have this figure."""

    @property
    def passed(self) -> bool:
        """Whether the figure exists and reaches the minimum."""
        return self.value is not None and self.value >= self.least


class Outcome(Record):
    """The decision about a world model."""

    verdict: Literal["passed", "refused"]
    reason: str
    """Names each figure below its minimum; empty if all passed."""


class GateVerdict(Outcome):
    """The gates of a world model, their results and the decision."""

    report: Digest
    gate: tuple[GateResult, ...]
