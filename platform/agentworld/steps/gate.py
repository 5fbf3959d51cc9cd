"""Decides whether the pipeline continues with the world model; a refusal is not a failure."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from agentworld.errors import InputError
from agentworld.records.base import Digest
from agentworld.records.gate import Gate, GateVerdict
from agentworld.records.progress import OnProgress
from agentworld.records.report import WorldModelReport
from agentworld.reports.metrics import metrics_of, parts_of
from agentworld.runner.folders import REPORT, VERDICT
from agentworld.runner.task import Plan, Task


def plan(task: Task) -> Plan:
    """Compares the mean with each bound, as for an alias, and ignores its interval. Raises
    InputError at run time if the report has no such figure.
    """

    def work(out: Path, _: OnProgress) -> Digest:
        report = WorldModelReport.read(task.folders["report"] / REPORT)
        verdict = _decide(task.recipe.gate, report)
        verdict.write(out / VERDICT)
        return verdict.digest

    return Plan(work)


def _decide(gates: Sequence[Gate], report: WorldModelReport) -> GateVerdict:
    figures = metrics_of(report)
    results = tuple(gate.judge(figures) for gate in gates)
    for result in results:
        if result.value is None:
            raise InputError(_unknown(result.metric, figures))
    failures = [
        f"{result.metric} is {result.value:g}, which is under {result.least:g}"
        for result in results
        if not result.passed
    ]
    return GateVerdict(
        verdict="refused" if failures else "passed",
        reason="; ".join(failures),
        report=report.digest,
        gate=results,
    )


def _unknown(metric: str, figures: Iterable[str]) -> str:
    parts = [parts_of(name) for name in figures]
    scored, measures = (", ".join(dict.fromkeys(part[place] for part in parts)) for place in (0, 1))
    return (
        f"the recipe's gate asks for {metric!r}, which the report does not have; join one of"
        f" {scored} and one of {measures} by a dot"
    )
