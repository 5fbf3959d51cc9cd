"""What an evaluation found; noise comes with an interval, a missing verdict is a hole."""

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentworld.errors import InputError
from agentworld.records.base import Digest, Record, first_problem


class Estimate(Record):
    """A mean over episodes with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float
    num: int
    """Turns or episodes that the mean is over."""
    holes: int = 0
    """Left out because there was no verdict."""


class WorldModelScore(Record):
    """How often a predictor was right: all turns, those that need memory, those with new words."""

    exact_match: Estimate
    exact_match_state: Estimate
    exact_match_unseen: Estimate
    rule: Estimate
    """Verdicts of the rule verifier, which forgives what the rule does not ask for."""
    by_class: dict[str, Estimate] = {}
    """Exact match by command class."""
    free_running: Estimate | None = None
    """Exact match when the history holds the model's own observations."""


class WorldModelReport(Record):
    """The stages' checkpoints and the baselines on the same held-out live episodes."""

    data: Digest
    stages: dict[str, WorldModelScore]
    artifacts: dict[str, Digest] = {}
    """What each stage had made, and was scored here."""
    baselines: dict[str, WorldModelScore]

    @property
    def subjects(self) -> set[Digest]:
        """What the report is about."""
        return set(self.artifacts.values())

    def figures(self, of: Set[Digest]) -> dict[str, Estimate]:
        """What it found of one of its subjects, as `exact_match` or `by_class.ls`."""
        of_stages = [score for name, score in self.stages.items() if self.artifacts.get(name) in of]
        return _figures(of_stages[-1].model_dump()) if of_stages else {}


class AgentScore(Record):
    """How often an agent's episodes end in success, in the simulator and in the live shell."""

    simulated: Estimate
    live: Estimate
    by_family: dict[str, Estimate] = {}
    """Live success by family of tasks."""


class AgentReport(Record):
    """The agent before and after training, on the same held-out tasks."""

    simulator: Digest
    untrained: AgentScore
    trained: AgentScore
    live_gain: Estimate
    live_steps: int
    """Commands that ran in the live shell to make this report."""

    @property
    def subjects(self) -> set[Digest]:
        """What the report is about."""
        return {self.simulator}

    def figures(self, of: Set[Digest]) -> dict[str, Estimate]:
        """What it found of its subject, as `live_gain` or `trained.live`."""
        return _figures(self.model_dump()) if self.simulator in of else {}


Report = WorldModelReport | AgentReport


def read_report(path: Path) -> Report:
    """A report of either kind; raises InputError for a file that is none."""
    try:
        return AgentReport.read(path)
    except InputError:
        return WorldModelReport.read(path)


def parse_report(data: bytes) -> Report:
    """The same of bytes; raises InputError for what is none."""
    try:
        return AgentReport.model_validate_json(data)
    except ValidationError:
        pass
    try:
        return WorldModelReport.model_validate_json(data)
    except ValidationError as error:
        raise InputError(f"this is no report: {first_problem(error)}") from error


def _figures(told: Mapping[str, Any], start: str = "") -> dict[str, Estimate]:
    """Every estimate in a record, named by where it stands."""
    if told.keys() == Estimate.model_fields.keys():
        return {start: Estimate.model_validate(told)}
    found: dict[str, Estimate] = {}
    for name, each in told.items():
        if isinstance(each, Mapping):
            found |= _figures(each, f"{start}.{name}".lstrip("."))
    return found
