"""What an evaluation found; noise comes with an interval, a missing verdict is a hole."""

import math
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from agentworld.errors import InputError
from agentworld.records.base import MOST_RECORD_BYTES, Digest, Record, Sparse, first_problem
from agentworld.records.endpoint_usage import JudgeUse
from agentworld.records.file import input_errors, read_regular
from agentworld.records.latency import Latency
from agentworld.records.validation import Answers, Validation, ValidationRule


class Estimate(Record):
    """A mean over episodes with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float
    num: int
    """Turns or episodes that the mean is over."""
    holes: int = 0
    """Left out because there was no verdict."""

    @property
    def excludes_zero(self) -> bool:
        """Whether a difference is seen: its interval lies on one side of 0."""
        return self.low > 0 or self.high < 0

    @property
    def caveat(self) -> str:
        """What a difference is shown with: words where none is seen, else nothing."""
        return "" if self.excludes_zero else ", no difference seen"

    def less(self, other: "Estimate") -> "Estimate":
        """This less another, of independent samples; numbers and holes are those of this.

        MOVER (Zou and Donner 2008, after Newcombe 1998): the distances of the two ends that a bound
        hangs on add up as independent errors do, each on its own side, so that skewed intervals
        give a skewed one. Where both are of the same tasks it is wider than it had to be.
        """
        mean = self.mean - other.mean
        return Estimate(
            mean=mean,
            low=mean - math.hypot(self.mean - self.low, other.high - other.mean),
            high=mean + math.hypot(self.high - self.mean, other.mean - other.low),
            num=self.num,
            holes=self.holes,
        )


class Figures(Record):
    """Of a group of turns, or differences on it: exact match, and the other metrics by name."""

    exact_match: Estimate
    metrics: dict[str, Estimate] = {}

    def of(self, metric: str) -> Estimate | None:
        """The figure of a metric; null where none has one."""
        return self.exact_match if metric == "exact_match" else self.metrics.get(metric)


class Gain(Figures):
    """By how much a stage is better than the one before it, turn by turn."""

    over: str
    by_tag: dict[str, Estimate] = {}
    """Of exact match."""
    by_kind: dict[str, Figures] = {}


class WorldModelScore(Figures):
    """How often a predictor was right, and how near it was.

    `rule` is what the domain's rules say; a metric that has no value for any turn is left out.
    """

    by_tag: dict[str, Estimate] = {}
    """Exact match of the turns with each tag of their domain: `history` are those that need memory,
    `unseen` those that hold what no training episode held."""
    by_kind: dict[str, Figures] = {}
    """Of turns that `read`, that `write`, that are a `computation`, or whose kind is `unknown`."""
    by_domain: dict[str, Figures] = {}
    """Empty where the turns are of one domain."""
    without_start: Estimate | None = None
    """Exact match without the reads of the initial state; null where there is no other turn."""
    free_running: Estimate | None = None
    """Exact match when the history holds the model's own observations."""
    answers: Answers | None = None
    """What became of the questions with the recorded history; null in an evaluation of long ago."""
    leads: dict[str, Figures] = {}
    """By baseline, by how much a stage is better, turn by turn."""
    gain: Gain | None = None
    """Of a stage over the one before it."""


class WorldModelReport(Record):
    """The stages' checkpoints and the baselines on the same held-out live episodes."""

    kind: Literal["world_model"] = "world_model"
    data: Digest
    stages: dict[str, WorldModelScore]
    artifacts: dict[str, Digest] = {}
    """What each stage had made, and was scored here."""
    baselines: dict[str, WorldModelScore]
    rl_gain: Estimate | None = Field(None, exclude_if=lambda gain: gain is None)
    """Exact match of RL less that of SFT, turn by turn; null where one of them is not there."""
    lead: Estimate | None = Field(None, exclude_if=lambda lead: lead is None)
    """The same of the better of the two over a baseline: of all baselines, and of all turns and
    those with the tags `history` and `unseen`, the one whose interval begins lowest."""
    absent: dict[str, str] = {}
    """The metrics that were asked for and have no figure here, each with the reason."""
    judge: Sparse[JudgeUse | None] = None
    """Of the metrics `judge` and those that begin with `judge_`; null without a judge."""
    rule: ValidationRule = ValidationRule()
    """When this validates a simulator."""

    @property
    def subjects(self) -> set[Digest]:
        """What the report is about."""
        return set(self.artifacts.values())

    def figures(self, digests: Set[Digest]) -> dict[str, Estimate]:
        """What it found of one of its subjects, as `exact_match` or `by_tag.history`."""
        score = self._score(digests)
        return figures_of_record(score) if score else {}

    def validation(self, digests: Set[Digest]) -> Validation | None:
        """What it says of one of its subjects; null where it is about none of these."""
        score = self._score(digests)
        return _validation(self.rule, score.answers, score.leads) if score else None

    def _score(self, digests: Set[Digest]) -> WorldModelScore | None:
        scores = [self.stages[name] for name in self.stages if self.artifacts.get(name) in digests]
        return scores[-1] if scores else None


class AgentScore(Record):
    """How often an agent's episodes end in success, in the simulator and live."""

    simulated: Estimate
    live: Estimate
    by_family: dict[str, Estimate] = {}
    """Live success by family of tasks."""

    @property
    def gap(self) -> Estimate:
        """Simulated less live success; the two are of episodes of their own."""
        return self.simulated.less(self.live)

    @property
    def gap_verdict(self) -> str:
        """What the sign of the gap means, in words."""
        words = "the simulator is harder", "simulated success is higher than live success"
        return words[self.gap.mean > 0] if self.gap.excludes_zero else "no difference seen"


class AgentReport(Record):
    """An agent at each stage of its training, on the same held-out tasks."""

    kind: Literal["agent"] = "agent"
    simulator: Digest
    base: AgentScore | None = Field(None, exclude_if=lambda score: score is None)
    """The weights that it began with: the world model's."""
    imitated: AgentScore
    """After it imitated explorers."""
    trained: AgentScore
    """After RL in the simulator."""
    live_gain: Estimate
    """Of RL: live success after it less live success before it, task by task."""
    live_steps: int
    """Actions that ran in the live environment to make this report."""
    live_disagreements: int = Field(0, ge=0, exclude_if=lambda num: num == 0)
    """Live episodes that the transcript calls a success and the state does not; they failed."""
    live_episodes: Sparse[dict[str, Digest]] = {}
    """The files of the live episodes beside the report, by name: whoever signs it signs them."""

    @property
    def scores(self) -> dict[str, AgentScore]:
        """By the stage, in the order of training."""
        by_stage = {"base": self.base, "imitated": self.imitated, "trained": self.trained}
        return {name: score for name, score in by_stage.items() if score}

    @property
    def subjects(self) -> set[Digest]:
        """What the report is about."""
        return {self.simulator}

    def figures(self, digests: Set[Digest]) -> dict[str, Estimate]:
        """What it found of its subject, as `live_gain` or `trained.live`."""
        return figures_of_record(self) if self.simulator in digests else {}

    def validation(self, digests: Set[Digest]) -> None:
        """Nothing: it is about an agent, and compares no answer with a live one."""


class FreeRunningScore(Figures):
    """How often a simulator showed what the live environment did, on its own observations."""

    by_tag: dict[str, Estimate] = {}
    """Exact match of the turns with each tag of their domain."""
    by_kind: dict[str, Figures] = {}
    """Of the turns that `read`, that `write`, that are a `computation`, and of the `unknown`."""
    answers: Answers | None = None
    leads: dict[str, Figures] = {}
    """Over the baselines that need no training; these are asked with the live history."""


class ServedReport(Record):
    """A simulator as it was served, on fresh held-out live episodes."""

    kind: Literal["served"] = "served"
    simulator: Digest
    job: str
    """Whose measurement it is: the pipeline's run."""
    measured_at: str
    trajectories: Digest
    """Of the file of live episodes."""
    num_episodes: int
    free_running: FreeRunningScore
    latency: Latency
    before: Digest | None = None
    """The evaluation that its version was registered with, where the store has one."""
    change: Estimate | None = None
    """Exact match now, less the free-running one of that evaluation."""
    drifted: bool = False
    """The whole interval of the change is below 0."""
    absent: dict[str, str] = {}
    """The metrics that were asked for and have no figure here, each with the reason."""
    rule: ValidationRule = ValidationRule()
    """When this validates a simulator."""

    @property
    def subjects(self) -> set[Digest]:
        """What the report is about."""
        return {self.simulator}

    def figures(self, digests: Set[Digest]) -> dict[str, Estimate]:
        """What it found of its subject, as `free_running.exact_match` or `change`."""
        return figures_of_record(self) if self.simulator in digests else {}

    def validation(self, digests: Set[Digest]) -> Validation | None:
        """What it says of its subject."""
        score = self.free_running
        is_subject = self.simulator in digests
        return _validation(self.rule, score.answers, score.leads) if is_subject else None


Report = WorldModelReport | AgentReport | ServedReport
"""Told apart by their `kind`."""

_REPORTS: TypeAdapter[Report] = TypeAdapter(Annotated[Report, Field(discriminator="kind")])


def read_report(path: Path) -> Report:
    """A report of any kind; raises InputError for a file that is none."""
    with input_errors(path):
        data = read_regular(path, MOST_RECORD_BYTES)
    return parse_report(data, str(path))


def parse_report(data: bytes, name: str = "this") -> Report:
    """The same of bytes; raises InputError for what is none, by its name."""
    try:
        return _REPORTS.validate_json(data)
    except ValidationError as error:
        raise InputError(f"{name} is no report: {first_problem(error)}") from error


def _validation(
    rule: ValidationRule, answers: Answers | None, leads: Mapping[str, Figures]
) -> Validation:
    """A baseline that was not compared in the rule's metric is left out."""
    leads_by_name = {name: figures.of(rule.metric) for name, figures in leads.items()}
    lows = {name: estimate.low for name, estimate in leads_by_name.items() if estimate}
    return Validation(rule=rule, answers=answers or Answers(num=0), leads=lows)


def figures_of_record(record: Record) -> dict[str, Estimate]:
    """Every estimate in a record, as `exact_match` or `by_tag.history`."""
    return _figures(record.model_dump())


def _figures(fields: Mapping[str, Any], start: str = "") -> dict[str, Estimate]:
    """Every estimate in a record, named by where it stands; `metrics` have names of their own."""
    if fields.keys() == Estimate.model_fields.keys():
        return {start: Estimate.model_validate(fields)}
    figures: dict[str, Estimate] = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            inside = start if name == "metrics" else f"{start}.{name}".lstrip(".")
            figures |= _figures(value, inside)
    return figures
