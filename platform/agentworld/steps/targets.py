"""What the figures of a job are held against: what must hold, and what is hoped for."""

from typing import NamedTuple

from agentworld.steps.summary import AgentFigures, ExactMatch, Summary

_MEASURES = ("exact_match", "exact_match_state", "exact_match_unseen")
_WORDS = ("all turns", "need memory", "unseen word")
_MUST = (0.75, 0.70, 0.40)
_GOALS = (0.95, 0.90, 0.80)
_ABOVE_ZERO = 1e-9
MOST_SECONDS = {"demo": 900, "long": 3600}  # by recipe; any other takes what it takes


class Figure(NamedTuple):
    """A value and its bounds; `at_most` where less is better."""

    name: str
    value: float
    must: float | None = None
    goal: float | None = None
    at_most: bool = False
    unit: str = ""

    @property
    def shown(self) -> str:
        """The value with its unit, as people read it."""
        digits = ".0f" if abs(self.value) >= 1_000 else ".3g"
        return f"{self.value:{digits}} {self.unit}".strip()

    @property
    def holds(self) -> bool:
        """Whether the value keeps what must hold."""
        return self.must is None or self.keeps(self.must)

    def keeps(self, bound: float) -> bool:
        """Whether the value is on the right side of a bound."""
        return self.value <= bound if self.at_most else self.value >= bound

    def wants(self, bound: float) -> str:
        """A bound in words."""
        if self.at_most:
            return f"at most {bound:.3g}"
        return "above 0" if bound == _ABOVE_ZERO else f"at least {bound:.3g}"


def figures_of(summary: Summary) -> list[Figure]:
    """Every figure that was found and has a bound."""
    world = summary.world_model
    best = max(world.sft, world.rl, key=lambda stage: stage.exact_match)
    exact = [
        Figure(f"exact match, {words}", getattr(best, measure), must, goal)
        for measure, words, must, goal in zip(_MEASURES, _WORDS, _MUST, _GOALS, strict=True)
    ]
    gain = world.rl.exact_match - world.sft.exact_match
    seconds, most = sum(summary.seconds.values()), MOST_SECONDS.get(summary.recipe)
    return [
        *exact,
        Figure("lead over both baselines", _lead(best, [*world.baseline.values()]), must=0.1),
        Figure("gain of RL over SFT", gain, goal=_ABOVE_ZERO),
        *(_of_agent(summary.agent) if summary.agent else ()),
        Figure("time of all steps", seconds, must=most, at_most=True, unit="s"),
        Figure("memory at most", summary.peak_memory_gib, must=6, at_most=True, unit="GiB"),
    ]


def _of_agent(agent: AgentFigures) -> list[Figure]:
    return [
        Figure("live success, untrained", agent.untrained.live_success, must=0.05),
        Figure("live success, trained", agent.trained.live_success, must=0.40, goal=0.80),
        Figure("live gain, lower end", agent.live_gain_interval[0], must=_ABOVE_ZERO),
        Figure("live steps in training", agent.live_steps_in_training, must=0, at_most=True),
    ]


def _lead(best: ExactMatch, baselines: list[ExactMatch]) -> float:
    """The smallest lead that the best stage has in any of the three."""
    leads = [
        getattr(best, measure) - getattr(baseline, measure)
        for measure in _MEASURES
        for baseline in baselines
    ]
    return float(min(leads))
