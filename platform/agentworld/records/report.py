"""What an evaluation found; noise comes with an interval, a missing verdict is a hole."""

import math
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from agentworld.errors import InputError
from agentworld.records.base import MOST_RECORD_BYTES, Digest, Record, Sparse, first_problem
from agentworld.records.file import input_errors, read_regular


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


class WorldModelScore(Record):
    """How often a predictor was right."""

    exact_match: Estimate
    by_tag: dict[str, Estimate] = {}
    """Exact match of the turns with each tag of their domain: `history` are those that need memory,
    `unseen` those that hold what no training episode held."""
    metrics: dict[str, Estimate] = {}
    """Other metrics by name: `rule` is what the domain's rules say, which forgive what no rule asks
    for. One that has no value for any turn is left out."""
    free_running: Estimate | None = None
    """Exact match when the history holds the model's own observations."""


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

    @property
    def subjects(self) -> set[Digest]:
        """What the report is about."""
        return set(self.artifacts.values())

    def figures(self, of: Set[Digest]) -> dict[str, Estimate]:
        """What it found of one of its subjects, as `exact_match` or `by_tag.history`."""
        of_stages = [score for name, score in self.stages.items() if self.artifacts.get(name) in of]
        return _figures(of_stages[-1].model_dump()) if of_stages else {}


class AgentScore(Record):
    """How often an agent's episodes end in success, in the simulator and live."""

    simulated: Estimate
    live: Estimate
    by_family: dict[str, Estimate] = {}
    """Live success by family of tasks."""


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

    def figures(self, of: Set[Digest]) -> dict[str, Estimate]:
        """What it found of its subject, as `live_gain` or `trained.live`."""
        return _figures(self.model_dump()) if self.simulator in of else {}


class FreeRunningScore(Record):
    """How often a simulator showed what the live environment did, on its own observations."""

    exact_match: Estimate
    metrics: dict[str, Estimate] = {}
    """Other metrics by name, as `rule`."""
    by_tag: dict[str, Estimate] = {}
    """Exact match of the turns with each tag of their domain."""


class Latency(Record):
    """Seconds until a step was answered, as its client saw them; null where none was."""

    p50_seconds: float | None
    p99_seconds: float | None


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

    @property
    def subjects(self) -> set[Digest]:
        """What the report is about."""
        return {self.simulator}

    def figures(self, of: Set[Digest]) -> dict[str, Estimate]:
        """What it found of its subject, as `free_running.exact_match` or `change`."""
        return _figures(self.model_dump()) if self.simulator in of else {}


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


def _figures(fields: Mapping[str, Any], start: str = "") -> dict[str, Estimate]:
    """Every estimate in a record, named by where it stands; `metrics` have names of their own."""
    if fields.keys() == Estimate.model_fields.keys():
        return {start: Estimate.model_validate(fields)}
    figures: dict[str, Estimate] = {}
    for name, each in fields.items():
        if isinstance(each, Mapping):
            inside = start if name == "metrics" else f"{start}.{name}".lstrip(".")
            figures |= _figures(each, inside)
    return figures
