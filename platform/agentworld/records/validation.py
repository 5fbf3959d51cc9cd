"""Whether an evaluation validates a simulator: how many answers it rests on, and a figure.

A missing answer is counted as missing. It is no part of a mean, and no 0 in one.
"""

from collections.abc import Iterator

from pydantic import Field

from agentworld.records.base import Record


class Answers(Record):
    """What became of the questions to a predictor."""

    num: int = Field(ge=0)
    """All of them."""
    num_episodes: int = Field(0, ge=0)
    """The episodes of which a turn was answered: intervals draw these."""
    missing: int = Field(0, ge=0)
    """The engine or the service failed: these turns are holes, and no part of any mean."""
    cut_off: int = Field(0, ge=0)
    """Cut off, or without an observation: the model's own failure, and wrong in every metric."""


class ValidationRule(Record):
    """What an evaluation has to show, so that its simulator counts as validated."""

    metric: str = "token_f1"
    """The metric that is compared with the baselines; `exact_match` is one too."""
    least_lead: float = Field(0.0, ge=-1, lt=1)
    """The lead over every baseline, turn by turn, has its whole 95 % interval above this."""
    least_episodes: int = Field(10, gt=0)
    """Of fewer an interval says little: of one it has no width."""


class Validation(Record):
    """The rule, and what an evaluation showed."""

    rule: ValidationRule
    answers: Answers
    leads: dict[str, float]
    """By baseline, the lower end of the lead over it."""

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that speaks against it, in words."""
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
