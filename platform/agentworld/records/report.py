"""Reports of evaluations; figures have intervals, and a missing verdict is a hole."""

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
    """The number of turns or episodes."""
    holes: int = 0
    """Left out because they have no verdict."""

    @property
    def excludes_zero(self) -> bool:
        """Whether a difference is significant: its interval lies on one side of 0."""
        return self.low > 0 or self.high < 0

    @property
    def caveat(self) -> str:
        """The caveat that is shown with a difference that is not significant; else empty."""
        return "" if self.excludes_zero else ", no difference seen"

    def less(self, other: "Estimate") -> "Estimate":
        """The difference to an independent estimate; numbers and holes are those of this one.

        MOVER (Zou and Donner 2008, after Newcombe 1998): the two distances that determine a bound
        add up as independent errors do, separately for each side, so that skewed intervals give a
        skewed one. If both are of the same tasks, the interval is wider than necessary.
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
    """Figures, or differences, of a group of turns: exact match, and the other metrics by name."""

    exact_match: Estimate
    metrics: dict[str, Estimate] = {}

    def of(self, metric: str) -> Estimate | None:
        """The figure of a metric; null if there is none."""
        return self.exact_match if metric == "exact_match" else self.metrics.get(metric)


class Gain(Figures):
    """The paired difference between a stage and the previous one, turn by turn."""

    over: str
    by_tag: dict[str, Estimate] = {}
    """Exact match by tag."""
    by_kind: dict[str, Figures] = {}


class WorldModelScore(Figures):
    """The accuracy of a predictor.

    `rule` is the domain's rules; a metric without a value for any turn is left out.
    """

    by_tag: dict[str, Estimate] = {}
    """Exact match of the turns with each tag of their domain: `history` are those that need memory,
    `unseen` those whose content no training episode had."""
    by_kind: dict[str, Figures] = {}
    """Turns by kind: `read`, `write`, `computation` or `unknown`."""
    by_domain: dict[str, Figures] = {}
    """Empty if the turns are of one domain."""
    without_start: Estimate | None = None
    """Exact match without the reads of the initial state; null if there are no other turns."""
    free_running: Estimate | None = None
    """Exact match if the history has the model's own observations."""
    answers: Answers | None = None
    """The outcomes of the requests with the recorded history; null in old evaluations."""
    leads: dict[str, Figures] = {}
    """The stage's lead over each baseline, turn by turn."""
    gain: Gain | None = None
    """The gain of a stage over the previous one."""


class WorldModelReport(Record):
    """Stages' checkpoints and baselines, evaluated on the same held-out live episodes."""

    kind: Literal["world_model"] = "world_model"
    data: Digest
    stages: dict[str, WorldModelScore]
    artifacts: dict[str, Digest] = {}
    """The evaluated artifact of each stage."""
    baselines: dict[str, WorldModelScore]
    rl_gain: Estimate | None = Field(None, exclude_if=lambda gain: gain is None)
    """Exact match of RL minus that of SFT, turn by turn; null if one of them is missing."""
    lead: Estimate | None = Field(None, exclude_if=lambda lead: lead is None)
    """The smallest lead of the better of the two over a baseline: of all baselines, and of all
    turns and those with the tags `history` and `unseen`, the one whose interval begins lowest."""
    absent: dict[str, str] = {}
    """The requested metrics without a figure here, each with the reason."""
    judge: Sparse[JudgeUse | None] = None
    """The judge of the metrics `judge` and `judge_*`; null without a judge."""
    rule: ValidationRule = ValidationRule()
    """The conditions under which this validates a simulator."""

    @property
    def subjects(self) -> set[Digest]:
        """The artifacts or simulators that the report is about."""
        return set(self.artifacts.values())

    def figures(self, digests: Set[Digest]) -> dict[str, Estimate]:
        """The figures of a subject, such as `exact_match` or `by_tag.history`."""
        score = self._score(digests)
        return figures_of_record(score) if score else {}

    def validation(self, digests: Set[Digest]) -> Validation | None:
        """The validation of a subject; null if it is about none of these."""
        score = self._score(digests)
        return _validation(self.rule, score.answers, score.leads) if score else None

    def _score(self, digests: Set[Digest]) -> WorldModelScore | None:
        scores = [self.stages[name] for name in self.stages if self.artifacts.get(name) in digests]
        return scores[-1] if scores else None


class AgentScore(Record):
    """An agent's success rates in the simulator and live."""

    simulated: Estimate
    live: Estimate
    by_family: dict[str, Estimate] = {}
    """Live success by family of tasks."""

    @property
    def gap(self) -> Estimate:
        """Simulated minus live success; the two are of independent episodes."""
        return self.simulated.less(self.live)

    @property
    def gap_verdict(self) -> str:
        """The meaning of the gap's sign, as text."""
        words = "the simulator is harder", "simulated success is higher than live success"
        return words[self.gap.mean > 0] if self.gap.excludes_zero else "no difference seen"


class AgentReport(Record):
    """An agent at each stage of its training, on the same held-out tasks."""

    kind: Literal["agent"] = "agent"
    simulator: Digest
    base: AgentScore | None = Field(None, exclude_if=lambda score: score is None)
    """The starting weights: the world model's."""
    imitated: AgentScore
    """After imitation of explorers."""
    trained: AgentScore
    """After RL in the simulator."""
    live_gain: Estimate
    """The gain of RL: live success after it minus live success before it, task by task."""
    live_steps: int
    """The number of live actions in this evaluation."""
    live_disagreements: int = Field(0, ge=0, exclude_if=lambda num: num == 0)
    """Live episodes that are a success by the transcript but not by the state; they count as
    failed."""
    live_episodes: Sparse[dict[str, Digest]] = {}
    """The files of the live episodes beside the report, by name; the report's signature covers
    them."""

    @property
    def scores(self) -> dict[str, AgentScore]:
        """By stage, in the order of training."""
        by_stage = {"base": self.base, "imitated": self.imitated, "trained": self.trained}
        return {name: score for name, score in by_stage.items() if score}

    @property
    def subjects(self) -> set[Digest]:
        """The artifact that the report is about."""
        return {self.simulator}

    def figures(self, digests: Set[Digest]) -> dict[str, Estimate]:
        """The figures of the subject, such as `live_gain` or `trained.live`."""
        return figures_of_record(self) if self.simulator in digests else {}

    def validation(self, digests: Set[Digest]) -> None:
        """Null: it is about an agent, and compares no response with a live one."""


class FreeRunningScore(Figures):
    """How often a simulator's observations equal the live ones, on its own history."""

    by_tag: dict[str, Estimate] = {}
    """Exact match of the turns with each tag of their domain."""
    by_kind: dict[str, Figures] = {}
    """Turns by kind: `read`, `write`, `computation` or `unknown`."""
    answers: Answers | None = None
    leads: dict[str, Figures] = {}
    """Leads over the baselines without training; these use the live history."""


class ServedReport(Record):
    """A served simulator, evaluated on fresh held-out live episodes."""

    kind: Literal["served"] = "served"
    simulator: Digest
    job: str
    """The pipeline's run that measured it."""
    measured_at: str
    trajectories: Digest
    """The digest of the file of live episodes."""
    num_episodes: int
    free_running: FreeRunningScore
    latency: Latency
    before: Digest | None = None
    """The evaluation that its version was registered with, if the store has one."""
    change: Estimate | None = None
    """Exact match now minus the free-running one of that evaluation."""
    drifted: bool = False
    """The whole interval of the change is below 0."""
    absent: dict[str, str] = {}
    """The requested metrics without a figure here, each with the reason."""
    rule: ValidationRule = ValidationRule()
    """The conditions under which this validates a simulator."""

    @property
    def subjects(self) -> set[Digest]:
        """The simulator that the report is about."""
        return {self.simulator}

    def figures(self, digests: Set[Digest]) -> dict[str, Estimate]:
        """The figures of the subject, such as `free_running.exact_match` or `change`."""
        return figures_of_record(self) if self.simulator in digests else {}

    def validation(self, digests: Set[Digest]) -> Validation | None:
        """The validation of the subject."""
        score = self.free_running
        is_subject = self.simulator in digests
        return _validation(self.rule, score.answers, score.leads) if is_subject else None


Report = WorldModelReport | AgentReport | ServedReport
"""Distinguished by their `kind`."""

_REPORTS: TypeAdapter[Report] = TypeAdapter(Annotated[Report, Field(discriminator="kind")])


def read_report(path: Path) -> Report:
    """Reads a report of any kind; raises InputError if the file is invalid."""
    with input_errors(path):
        data = read_regular(path, MOST_RECORD_BYTES)
    return parse_report(data, str(path))


def parse_report(data: bytes, name: str = "this") -> Report:
    """Parses a report; raises InputError, with `name`, if it is invalid."""
    try:
        return _REPORTS.validate_json(data)
    except ValidationError as error:
        raise InputError(f"{name} is no report: {first_problem(error)}") from error


def _validation(
    rule: ValidationRule, answers: Answers | None, leads: Mapping[str, Figures]
) -> Validation:
    """Leaves out baselines without the rule's metric."""
    leads_by_name = {name: figures.of(rule.metric) for name, figures in leads.items()}
    lows = {name: estimate.low for name, estimate in leads_by_name.items() if estimate}
    return Validation(rule=rule, answers=answers or Answers(num=0), leads=lows)


def figures_of_record(record: Record) -> dict[str, Estimate]:
    """Every estimate in a record, by path, such as `exact_match` or `by_tag.history`."""
    return _figures(record.model_dump())


def _figures(fields: Mapping[str, Any], start: str = "") -> dict[str, Estimate]:
    """Every estimate in a record, by path; `metrics` are not prefixed."""
    if fields.keys() == Estimate.model_fields.keys():
        return {start: Estimate.model_validate(fields)}
    figures: dict[str, Estimate] = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            inside = start if name == "metrics" else f"{start}.{name}".lstrip(".")
            figures |= _figures(value, inside)
    return figures
