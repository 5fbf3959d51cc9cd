"""A world model's figures as rows of tables: by metric, by kind of turn, and by tag."""

from collections.abc import Iterable
from typing import NamedTuple

from agentworld.records.report import Estimate, Figures, WorldModelReport, WorldModelScore

FEW = 30
"""A group with fewer turns is marked as small."""


BASELINES = {
    "copy": "the last observation again",
    "repeat": "what the same action showed earlier in the episode",
    "frequent": "what the action's tool showed most often",
    "nearest": "what the tool's most similar recorded turn showed",
}
"""What each baseline predicts, in the words of docs/guides/evaluation.md."""


def explain_baselines(names: Iterable[str]) -> str:
    """One clause for each; baselines of other packages are left out."""
    return "; ".join(f"{name} predicts {BASELINES[name]}" for name in names if name in BASELINES)


class Lead(NamedTuple):
    """The lead over the strongest baseline."""

    baseline: str
    estimate: Estimate


class MetricRow(NamedTuple):
    """A metric over all turns; null if a stage has no value of it."""

    name: str
    stages: list[Estimate | None]
    lead: Lead | None
    """The last stage's lead."""


class GroupRow(NamedTuple):
    """The turns of a kind or with a tag."""

    name: str
    num: int
    stages: list[Estimate | None]
    """Exact match."""
    gain: Estimate | None
    """The gain of the last stage over the one before it, turn by turn."""

    @property
    def is_small(self) -> bool:
        """Whether it has too few turns."""
        return self.num < FEW


def metric_rows(report: WorldModelReport) -> list[MetricRow]:
    """Exact match first."""
    scores = [*report.stages.values()]
    names = ["exact_match", *scores[-1].metrics]
    return [
        MetricRow(name, [score.of(name) for score in scores], _lead(scores[-1], name))
        for name in names
    ]


def kind_rows(report: WorldModelReport) -> list[GroupRow]:
    """Reads, writes, computations, and unknown kinds; none if all kinds are unknown."""
    *_, last = report.stages.values()
    if last.by_kind.keys() <= {"unknown"}:
        return []
    gains = last.gain.by_kind if last.gain else {}
    return [
        GroupRow(
            kind,
            figures.exact_match.num,
            [_exact(score.by_kind.get(kind)) for score in report.stages.values()],
            _exact(gains.get(kind)),
        )
        for kind, figures in last.by_kind.items()
    ]


def tag_rows(report: WorldModelReport) -> list[GroupRow]:
    """The most frequent tag first."""
    *_, last = report.stages.values()
    gains = last.gain.by_tag if last.gain else {}
    rows = [
        GroupRow(
            tag,
            estimate.num,
            [score.by_tag.get(tag) for score in report.stages.values()],
            gains.get(tag),
        )
        for tag, estimate in last.by_tag.items()
    ]
    return sorted(rows, key=lambda row: -row.num)


def _exact(figures: Figures | None) -> Estimate | None:
    return figures.exact_match if figures else None


def _lead(score: WorldModelScore, metric: str) -> Lead | None:
    """The smallest lead: the one with the lowest lower bound."""
    leads = [
        Lead(name, estimate)
        for name, figures in score.leads.items()
        if (estimate := figures.of(metric))
    ]
    return min(leads, key=lambda lead: lead.estimate.low, default=None)
