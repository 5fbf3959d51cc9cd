"""All figures of a finished job in one record, under the names that benchmarks use."""

from collections.abc import Mapping
from pathlib import Path

from agentworld.records.base import Record
from agentworld.records.gate import Outcome
from agentworld.records.report import (
    AgentReport,
    AgentScore,
    Estimate,
    WorldModelReport,
    WorldModelScore,
)
from agentworld.runner.code import commit
from agentworld.runner.folders import AGENT, REPORT, TrainedAgent, verdict_of
from agentworld.storage.receipts import read_receipt


class ExactMatch(Record):
    """Exact match: shares of turns."""

    exact_match: float
    by_tag: dict[str, float] = {}
    """By tag of the turns."""
    without_start: float | None = None
    """Turns that do not read the initial state."""

    @classmethod
    def of(cls, score: WorldModelScore) -> "ExactMatch":
        """The means of a score."""
        return cls(
            exact_match=score.exact_match.mean,
            by_tag={tag: estimate.mean for tag, estimate in score.by_tag.items()},
            without_start=score.without_start.mean if score.without_start else None,
        )


class WorldModelFigures(Record):
    """The stages and the baselines."""

    cpt: ExactMatch
    sft: ExactMatch
    rl: ExactMatch
    baseline: dict[str, ExactMatch]
    rl_gain: Estimate | None
    """Exact match of RL minus that of SFT; null, as `lead`, in an old evaluation."""
    lead: Estimate | None
    """The smallest lead of the better of the two over the baselines."""


class Success(Record):
    """Success rates."""

    simulated_success: float
    live_success: float

    @classmethod
    def of(cls, score: AgentScore) -> "Success":
        """The means of a score."""
        return cls(simulated_success=score.simulated.mean, live_success=score.live.mean)


class AgentFigures(Record):
    """The agent at each stage of its training."""

    base: Success | None
    """The world model's weights; null in an old validation."""
    imitated: Success
    """After imitation of explorers."""
    trained: Success
    """After RL in the simulator."""
    live_gain: float
    """The gain by RL."""
    live_gain_interval: tuple[float, float]
    live_steps_in_training: int


class Summary(Record):
    """The content of `summary.json`."""

    recipe: str
    """The recipe's name; some bounds are for one recipe."""
    commit: str
    world_model: WorldModelFigures
    gate: Outcome
    agent: AgentFigures | None
    """Null, as the simulator, if the gate refused."""
    simulator: dict[str, str] | None
    seconds: dict[str, float]
    """Seconds of each step in its first run; a reused step keeps its time."""
    peak_memory_gib: float
    """Of all processes together."""


def summarise(recipe: str, folders: Mapping[str, Path], peak_memory_gib: float) -> Summary:
    """The figures of a finished job, from the folders of its steps."""
    receipts = {step: read_receipt(folder) for step, folder in folders.items()}
    peaks = (receipt.peak_memory_gib for receipt in receipts.values())
    verdict = verdict_of(folders["gate"])
    is_passed = verdict.verdict == "passed"
    return Summary(
        recipe=recipe,
        commit=commit(),
        world_model=_world_model(WorldModelReport.read(folders["evaluate"] / REPORT)),
        gate=Outcome(verdict=verdict.verdict, reason=verdict.reason),
        agent=_agent(folders) if is_passed else None,
        simulator={"digest": receipts["simulate"].output} if is_passed else None,
        seconds={step: receipt.seconds for step, receipt in receipts.items()},
        peak_memory_gib=max(peak_memory_gib, *peaks),
    )


def _world_model(report: WorldModelReport) -> WorldModelFigures:
    baselines = {name: ExactMatch.of(score) for name, score in report.baselines.items()}
    stages = {name: ExactMatch.of(score) for name, score in report.stages.items()}
    return WorldModelFigures(**stages, baseline=baselines, rl_gain=report.rl_gain, lead=report.lead)


def _agent(folders: Mapping[str, Path]) -> AgentFigures:
    report = AgentReport.read(folders["validate"] / REPORT)
    agent = TrainedAgent.read(folders["register_agent"] / AGENT)
    return AgentFigures(
        base=Success.of(report.base) if report.base else None,
        imitated=Success.of(report.imitated),
        trained=Success.of(report.trained),
        live_gain=report.live_gain.mean,
        live_gain_interval=(report.live_gain.low, report.live_gain.high),
        live_steps_in_training=agent.live_steps,
    )
