"""What an evaluation found; noise comes with an interval, a missing verdict is a hole."""

from pathlib import Path

from agentworld.errors import InputError
from agentworld.records.base import Digest, Record


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


Report = WorldModelReport | AgentReport


def read_report(path: Path) -> Report:
    """A report of either kind; raises InputError for a file that is none."""
    try:
        return AgentReport.read(path)
    except InputError:
        return WorldModelReport.read(path)
