"""The targets of a job's figures: bounds that must hold, and goals.

A difference meets a bound if its whole interval does.
"""

from typing import Literal, NamedTuple

from agentworld.domains.base import HISTORY, UNSEEN
from agentworld.records.report import Estimate
from agentworld.reports.summary import AgentFigures, Summary

_BY_TAG = {HISTORY: ("need memory", 0.70, 0.90), UNSEEN: ("unseen content", 0.40, 0.80)}
_ABOVE_ZERO = 1e-9
NO_TARGETS = {"smoke"}
"""Recipes that are too small for the demo's targets."""
ONLY_DIFFERENCES = {"mcp", "terminal", "live"}
"""Recipes for which only leads and gains have bounds; shares of turns and tasks have none."""
MOST_SECONDS = {"demo": 900, "long": 3600, "mcp": 900, "terminal": 900}  # by recipe


class Figure(NamedTuple):
    """A value and its bounds; with `at_most`, less is better."""

    name: str
    value: float
    must: float | None = None
    goal: float | None = None
    at_most: bool = False
    unit: str = ""
    interval: tuple[float, float] | None = None
    """The 95 % interval of a difference."""

    @property
    def text(self) -> str:
        """The value with its unit, or its interval, as text."""
        if self.interval:
            low, high = self.interval
            return f"{self.value:+.3f} {low:+.3f} to {high:+.3f}"
        digits = ".0f" if abs(self.value) >= 1_000 else ".3g"
        return f"{self.value:{digits}} {self.unit}".strip()

    @property
    def holds(self) -> bool:
        """Whether the value meets its bound."""
        return self.must is None or self.keeps(self.must)

    def keeps(self, bound: float) -> bool:
        """Whether the value, or its whole interval, meets a bound."""
        low, high = self.interval or (self.value, self.value)
        return high <= bound if self.at_most else low >= bound

    def verdict(self, bound: float) -> Literal["yes", "no", "no difference seen"]:
        """The same as text; "no difference seen" if the interval of a difference contains 0."""
        if self.keeps(bound):
            return "yes"
        low, high = self.interval or (self.value, self.value)
        return "no difference seen" if self.interval and low <= 0 <= high else "no"

    def wants(self, bound: float) -> str:
        """A bound as text."""
        if self.at_most:
            return f"at most {bound:.3g}"
        return "above 0" if bound == _ABOVE_ZERO else f"at least {bound:.3g}"


def has_no_targets(summary: Summary) -> bool:
    """Whether the recipe has no quality targets."""
    return summary.recipe in NO_TARGETS


def figures_of(summary: Summary) -> list[Figure]:
    """All figures with their bounds."""
    world = summary.world_model
    best = max(world.sft, world.rl, key=lambda stage: stage.exact_match)
    exact = [Figure("exact match, all turns", best.exact_match, must=0.75, goal=0.95)]
    exact += [
        Figure(f"exact match, {label}", best.by_tag[tag], must, goal)
        for tag, (label, must, goal) in _BY_TAG.items()
        if tag in best.by_tag
    ]
    if best.without_start is not None:
        exact.append(Figure("exact match, start left out", best.without_start))
    seconds, limit = sum(summary.seconds.values()), MOST_SECONDS.get(summary.recipe)
    quality = [
        *exact,
        *_difference("lead over the baselines", world.lead, must=0.1),
        *_difference("gain of RL over SFT", world.rl_gain, goal=_ABOVE_ZERO),
        *(_of_agent(summary.agent) if summary.agent else ()),
    ]
    if summary.recipe in ONLY_DIFFERENCES:
        quality = [_of_difference(row) for row in quality]
    if has_no_targets(summary):
        quality = [row._replace(must=None, goal=None) for row in quality]
    return [
        *quality,
        *([_of_steps(summary.agent)] if summary.agent else ()),
        Figure("time of all steps", seconds, must=limit, at_most=True, unit="s"),
        Figure("memory at most", summary.peak_memory_gib, must=6, at_most=True, unit="GiB"),
    ]


def _of_difference(row: Figure) -> Figure:
    """A figure with the bounds of ONLY_DIFFERENCES: a difference must be above 0, and the demo's
    0.1 is only its goal. A share has no bounds.
    """
    if row.interval is None:
        return row._replace(must=None, goal=None)
    is_large = row.must is not None and row.must > _ABOVE_ZERO
    return row._replace(must=_ABOVE_ZERO, goal=row.must) if is_large else row


def _of_agent(agent: AgentFigures) -> list[Figure]:
    gain, interval = agent.live_gain, agent.live_gain_interval
    return [
        Figure("live success, imitated", agent.imitated.live_success, must=0.05),
        Figure("live success, trained", agent.trained.live_success, must=0.40, goal=0.80),
        Figure("live gain of RL", gain, must=_ABOVE_ZERO, interval=interval),
    ]


def _of_steps(agent: AgentFigures) -> Figure:
    return Figure("live steps in training", agent.live_steps_in_training, must=0, at_most=True)


def _difference(
    name: str, estimate: Estimate | None, must: float | None = None, goal: float | None = None
) -> list[Figure]:
    """Empty if an old evaluation has no difference."""
    if estimate is None:
        return []
    return [Figure(name, estimate.mean, must, goal, interval=(estimate.low, estimate.high))]
