"""Whether an evaluation validates a simulator: the number of responses, and a figure.

A missing response is counted as missing. It is not part of a mean, and is not a 0 in one.
"""

from collections.abc import Iterator

from pydantic import Field

from agentworld.records.base import Record


class Answers(Record):
    """The outcomes of the requests to a predictor."""

    num: int = Field(ge=0)
    """All requests."""
    num_episodes: int = Field(0, ge=0)
    """The episodes with an answered turn: intervals resample these."""
    missing: int = Field(0, ge=0)
    """The engine or the service failed: these turns are holes, and not part of any mean."""
    cut_off: int = Field(0, ge=0)
    """Cut off, or without an observation: the model's own failure, and wrong in every metric."""


class ValidationRule(Record):
    """The conditions under which an evaluation validates its simulator."""

    metric: str = "token_f1"
    """The metric that is compared with the baselines; `exact_match` is one too."""
    least_lead: float = Field(0.0, ge=-1, lt=1)
    """The lead over every baseline, turn by turn, has its whole 95 % interval above this."""
    least_episodes: int = Field(10, gt=0)
    """With fewer episodes an interval says little: of one it has no width."""


class Validation(Record):
    """The rule, and an evaluation's results."""

    rule: ValidationRule
    answers: Answers
    leads: dict[str, float]
    """The lower end of the lead over each baseline."""

    @property
    def passed(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """The reasons why it does not validate, as text."""
        return tuple(self._problems())

    def _problems(self) -> Iterator[str]:
        answers, rule = self.answers, self.rule
        if not answers.num:
            yield "nothing was asked"
        elif answers.num_episodes < rule.least_episodes:
            yield f"{answers.num_episodes} episodes were answered; {rule.least_episodes} are needed"
        if answers.missing:
            yield f"{answers.missing} of {answers.num} answers are missing"
        if answers.cut_off:
            yield f"{answers.cut_off} of {answers.num} answers are cut off or empty"
        if not self.leads:
            yield f"no baseline was compared in {rule.metric}"
        for baseline, low in self.leads.items():
            if low <= rule.least_lead:
                yield (
                    f"the lead over {baseline} in {rule.metric} may be {low:.3f}, which is not"
                    f" above {rule.least_lead:g}"
                )
