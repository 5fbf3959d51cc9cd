"""The report of a job: one HTML file with its plots, for light and dark screens.

The template escapes all text of models and recipes.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from agentworld.audit.questions.agent import AgentChain
from agentworld.domains.base import HISTORY, UNSEEN
from agentworld.records.checkpoint import WORLD_STAGES
from agentworld.records.file import write_whole
from agentworld.records.report import (
    AgentReport,
    AgentScore,
    Estimate,
    WorldModelReport,
    WorldModelScore,
)
from agentworld.records.statements.edge import GRADE_MEANINGS
from agentworld.reports.groups import FEW, explain_baselines, kind_rows, metric_rows, tag_rows
from agentworld.reports.summary import Summary
from agentworld.reports.targets import figures_of, has_no_targets
from agentworld.reports.templates import templates
from agentworld.runner.folders import CHAIN, REPORT, STAGE_PAGE


class Bar(NamedTuple):
    """One bar of a plot: its share of the width, and the text after it."""

    label: str
    share: float
    text: str
    kind: str
    """The CSS class of its colour."""
    interval: tuple[float, float] | None = None


class Plot(NamedTuple):
    """Horizontal bars on one scale."""

    title: str
    bars: list[Bar]


_Column = Callable[[WorldModelScore], Estimate | None]


def write_page(
    path: Path, folders: Mapping[str, Path], summary: Summary, after_gate: Sequence[str]
) -> Path:
    """Writes the report of a finished job; if a gate refused, some steps were skipped."""
    is_refused = summary.gate.verdict == "refused"
    page = render_page(
        summary,
        WorldModelReport.read(folders["evaluate"] / REPORT),
        None if is_refused else AgentReport.read(folders["validate"] / REPORT),
        None if is_refused else AgentChain.read(folders["audit"] / CHAIN),
        after_gate,
        _stage_pages(folders, path.parent),
    )
    write_whole(path, page.encode())
    return path


def render_page(
    summary: Summary,
    world: WorldModelReport,
    agent: AgentReport | None,
    chain: AgentChain | None,
    after_gate: Sequence[str],
    stage_pages: Mapping[str, str],
) -> str:
    """The page as text; without agent and chain if a gate ended the job.

    `stage_pages` are relative addresses by stage.
    """
    page = templates().get_template("page.html")
    return page.render(
        summary=summary,
        figures=figures_of(summary),
        world_plots=_world_plots(world),
        metrics=metric_rows(world),
        kinds=kind_rows(world),
        tags=tag_rows(world),
        absent=world.absent,
        judge=world.judge,
        few=FEW,
        baselines=explain_baselines(world.baselines),
        stages=list(world.stages),
        without_targets=has_no_targets(summary),
        agent_plots=_agent_plots(agent) if agent else [],
        agent=agent,
        seconds=_seconds(summary),
        chain=chain,
        grade_meanings=GRADE_MEANINGS,
        after_gate=after_gate,
        stage_pages=stage_pages,
    )


def _stage_pages(folders: Mapping[str, Path], beside: Path) -> dict[str, str]:
    """The pages of the stages; old trainings have none."""
    pages = {stage: folders[stage] / STAGE_PAGE for stage in WORLD_STAGES if stage in folders}
    return {stage: os.path.relpath(page, beside) for stage, page in pages.items() if page.is_file()}


def _world_plots(report: WorldModelReport) -> list[Plot]:
    columns: dict[str, _Column] = {
        "All turns": lambda score: score.exact_match,
        "Turns that need memory": lambda score: score.by_tag.get(HISTORY),
        "Turns with unseen content": lambda score: score.by_tag.get(UNSEEN),
        "Turns that do not read the initial state": lambda score: score.without_start,
        "Free-running": lambda score: score.free_running,
    }
    plots = [Plot(title, _scores(report, column)) for title, column in columns.items()]
    return [plot for plot in plots if plot.bars]


def _scores(report: WorldModelReport, column: _Column) -> list[Bar]:
    return [
        _bar(name, estimate, kind)
        for scores, kind in ((report.baselines, "plain"), (report.stages, "made"))
        for name, score in scores.items()
        if (estimate := column(score))
    ]


def _agent_plots(report: AgentReport) -> list[Plot]:
    def bars(world: Callable[[AgentScore], Estimate]) -> list[Bar]:
        return [
            _bar(name, world(score), "made" if name == "trained" else "plain")
            for name, score in report.scores.items()
        ]

    return [
        Plot("In the simulator", bars(lambda score: score.simulated)),
        Plot("Live", bars(lambda score: score.live)),
    ]


def _bar(name: str, estimate: Estimate, kind: str) -> Bar:
    interval = (estimate.low, estimate.high)
    return Bar(name, estimate.mean, f"{estimate.mean:.3f}", kind, interval)


def _seconds(summary: Summary) -> Plot:
    longest = max(summary.seconds.values())
    bars = [
        Bar(step, seconds / longest, f"{seconds:.0f} s", "made")
        for step, seconds in summary.seconds.items()
    ]
    return Plot("Seconds of each step", bars)
