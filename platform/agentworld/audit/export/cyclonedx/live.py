"""An agent's live validation in its bill of materials."""

from collections.abc import Iterator

from pydantic import JsonValue

from agentworld.audit.checks.validation import validation_of
from agentworld.audit.questions.agent import AgentChain
from agentworld.audit.read.sources import Sources
from agentworld.lineage.base import Agent
from agentworld.records.base import canonical_json
from agentworld.records.report import AgentReport, Estimate


def report_of(agent: Agent, chain: AgentChain, sources: Sources) -> AgentReport | None:
    """The live validation of an agent; null if it has none, or a changed one."""
    validation = validation_of(agent, chain.simulator, sources) if chain.live else None
    return validation.report if validation else None


def live_properties(chain: AgentChain, report: AgentReport | None) -> dict[str, object]:
    """Tasks and successes, before and after RL."""
    if chain.live is None or report is None:
        return {}
    return {
        "live-report": report.digest,
        "live-report-signed": chain.live.signature is not None,
        "live-tasks": report.trained.live.num,
        "live-successes": chain.live.successes_after,
        "live-successes-before": chain.live.successes_before,
    }


def live_metrics(report: AgentReport | None) -> list[JsonValue]:
    """Success rates with their 95 % intervals, at each stage of training."""
    return [*_metrics(report)] if report else []


def _metrics(report: AgentReport) -> Iterator[JsonValue]:
    for stage, score in report.scores.items():
        yield _metric("live success rate", score.live, stage)
    yield _metric("gain in live success rate by RL", report.live_gain, "trained")


def _metric(name: str, estimate: Estimate, stage: str) -> JsonValue:
    value, low, high = (
        canonical_json(number).decode() for number in (estimate.mean, estimate.low, estimate.high)
    )
    interval: JsonValue = {"lowerBound": low, "upperBound": high}
    return {"type": name, "value": value, "slice": stage, "confidenceInterval": interval}
