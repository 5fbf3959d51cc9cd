"""Gates: what a report has to show before something may go on, and what it showed."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import ValidationError

from agentworld.errors import InputError
from agentworld.records.base import Digest, Record, ShortText


class Gate(Record):
    """What a report has to show."""

    metric: ShortText
    """A figure's name in a report, as `live_gain` or `exact_match`."""
    least: float
    """How large the figure has to be."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """From METRIC=LEAST; raises InputError."""
        metric, _, least = text.rpartition("=")
        try:
            return cls.model_validate({"metric": metric, "least": least})
        except ValidationError as error:
            raise InputError(
                f"{text!r} is no gate; write METRIC=LEAST, as live_gain=0.2, with the name of a"
                " figure and a number"
            ) from error

    def judge(self, figures: Mapping[str, float]) -> "GateResult":
        """This gate with what a report told."""
        return GateResult(metric=self.metric, least=self.least, value=figures.get(self.metric))


class GateResult(Gate):
    """A gate, and what the report showed."""

    value: float | None = None
    """Null where no report told this figure."""

    @property
    def passed(self) -> bool:
        """Whether the figure is there and large enough."""
        return self.value is not None and self.value >= self.least


class Outcome(Record):
    """Whether a world model may go on."""

    verdict: Literal["passed", "refused"]
    reason: str
    """Names each figure that was too small; empty where none was."""


class GateVerdict(Outcome):
    """What was asked of a world model, what was found and what follows."""

    report: Digest
    gate: tuple[GateResult, ...]
