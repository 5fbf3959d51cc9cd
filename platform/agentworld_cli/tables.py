"""Prints the demo's figures as tables."""

from collections.abc import Mapping
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from agentworld.records.base import Digest
from agentworld.records.gate import Outcome
from agentworld.records.report import AgentReport, Estimate, WorldModelReport, WorldModelScore
from agentworld.reports.groups import explain_baselines, kind_rows, metric_rows
from agentworld.reports.summary import Summary
from agentworld.reports.targets import Figure, figures_of, has_no_targets
from agentworld.runner.folders import AGENT, REPORT, TrainedAgent
from agentworld.steps.table import AFTER_GATE
from agentworld_cli.show import console


def show_summary(folders: Mapping[str, Path], summary: Summary) -> None:
    """Prints the results and their quality."""
    report = WorldModelReport.read(folders["evaluate"] / REPORT)
    console.print(_world_model(report), "")
    if words := explain_baselines(report.baselines):
        console.print(f"baselines, without training: {words}\n", style="dim")
    console.print(_metrics(report), "")
    if kind_rows(report):
        console.print(_kinds(report), "")
    if summary.agent:
        console.print(_agent(AgentReport.read(folders["validate"] / REPORT)), "")
    figures = figures_of(summary)
    if has_no_targets(summary):
        console.print(f"{summary.recipe} is too small for the demo's targets; it has none.")
    show_figures(figures)
    show_refusal(summary.gate)
    if summary.simulator:
        agent = TrainedAgent.read(folders["register_agent"] / AGENT)
        _show_agent(summary.simulator["digest"], agent)


def show_figures(figures: list[Figure]) -> None:
    """Prints figures and differences beside their thresholds."""
    console.print(_figures([figure for figure in figures if not figure.interval]), "")
    console.print(_differences([figure for figure in figures if figure.interval]), "")


def show_refusal(outcome: Outcome) -> None:
    """Prints the reason why a job ended at its gate, if it did."""
    if outcome.verdict == "refused":
        skipped = ", ".join(AFTER_GATE)
        console.print(f"gate: refused, {outcome.reason}; {skipped} were skipped", soft_wrap=True)


def _show_agent(simulator: Digest, agent: TrainedAgent) -> None:
    console.print(f"simulator: {simulator}", soft_wrap=True)
    console.print(
        f"agent: {agent.version}, {agent.run.num_steps} simulated steps,"
        f" {agent.live_steps} live steps in training",
        soft_wrap=True,
    )


def _world_model(report: WorldModelReport) -> Table:
    table = _table("World model: exact match on held-out live episodes", "predictor")
    for heading in ("all turns", "need memory", "unseen content", "free-running"):
        table.add_column(heading, justify="right")
    for name, score in {**report.baselines, **report.stages}.items():
        table.add_row(name, *(_interval(column) for column in _columns(score)))
    return table


def _metrics(report: WorldModelReport) -> Table:
    """The last stage's metrics; the report's page has the others."""
    stage = [*report.stages][-1]
    table = _table(f"Metrics of {stage} on all turns", "metric")
    for heading in (stage, "lead", "over"):
        table.add_column(heading, justify="right")
    for row in metric_rows(report):
        lead = (_signed(row.lead.estimate), row.lead.baseline) if row.lead else ()
        table.add_row(row.name, _interval(row.stages[-1]), *lead)
    return table


def _kinds(report: WorldModelReport) -> Table:
    stage = [*report.stages][-1]
    table = _table("Exact match by kind of turn", "kind")
    for heading in ("turns", stage, "gain"):
        table.add_column(heading, justify="right")
    for row in kind_rows(report):
        num = f"{row.num} [dim]few[/]" if row.is_small else str(row.num)
        table.add_row(row.name, num, _interval(row.stages[-1]), _signed(row.gain))
    return table


def _signed(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return f"{estimate.mean:+.3f} [dim]{estimate.low:+.2f} to {estimate.high:+.2f}[/]"


def _columns(score: WorldModelScore) -> list[Estimate | None]:
    tagged_scores = [score.by_tag.get(tag) for tag in ("history", "unseen")]
    return [score.exact_match, *tagged_scores, score.free_running]


def _agent(report: AgentReport) -> Table:
    table = _table("Agent: success on held-out tasks", "agent")
    for heading in ("simulated", "live", "gap"):
        table.add_column(heading, justify="right")
    for name, score in report.scores.items():
        gap = f"{_signed(score.gap)}\n[dim]{score.gap_verdict}[/]"
        table.add_row(name, _interval(score.simulated), _interval(score.live), gap)
    return table


def _figures(figures: list[Figure]) -> Table:
    table = _table("Figures", "figure")
    for heading in ("value", "must", "goal"):
        table.add_column(heading, justify="right")
    for figure in figures:
        bounds = _bound(figure, figure.must), _bound(figure, figure.goal)
        table.add_row(figure.name, figure.text, *bounds)
    return table


def _differences(figures: list[Figure]) -> Table:
    table = _table("Differences", "difference")
    for heading in ("mean, 95 % interval", "verdict"):
        table.add_column(heading, justify="right")
    for figure in figures:
        bounds = {"must": figure.must, "goal": figure.goal}
        verdicts = [f"{word}: {_bound(figure, n)}" for word, n in bounds.items() if n is not None]
        table.add_row(figure.name, figure.text, "; ".join(verdicts))
    return table


def _bound(figure: Figure, bound: float | None) -> str:
    if bound is None:
        return ""
    verdict = figure.verdict(bound)
    if verdict == "no difference seen":
        return f"[yellow]{verdict}[/]"
    colour = "green" if verdict == "yes" else "red"
    return f"{figure.wants(bound)} [{colour}]{verdict}[/]"


def _table(title: str, first: str) -> Table:
    return Table(
        Column(first, no_wrap=True),
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return f"{estimate.mean:.3f} [dim]{_two_digits(estimate.low)}-{_two_digits(estimate.high)}[/]"


def _two_digits(share: float) -> str:
    """A share with two digits, so that a row fits into eighty columns."""
    return f"{share:.2f}".replace("0.", ".", 1)
