"""The difference of two predictors on the same turns, with an interval. Turns are compared in
pairs, so the difficulty of a turn adds no noise to the difference.
"""

from collections.abc import Iterable, Mapping, Sequence

from agentworld.domains.base import HISTORY, UNSEEN
from agentworld.errors import EngineError
from agentworld.evaluate.bootstrap import estimate_difference
from agentworld.evaluate.judging import (
    TurnFilter,
    has_kind,
    has_tag,
    is_any,
    kinds_of,
    tags_of,
    targets_of,
)
from agentworld.evaluate.world import ScoredWorld, choose
from agentworld.recipes.serve import EvaluateRecipe
from agentworld.records.report import Estimate, Figures, Gain
from agentworld.records.sample import Sample

EXACT = "exact_match"


class Comparison:
    """Compares predictors that were scored on these samples by this recipe."""

    def __init__(self, samples: Sequence[Sample], recipe: EvaluateRecipe) -> None:
        selection = choose(samples, recipe.num_episodes, recipe.seed)
        self._targets = [targets_of(sample) for sample in selection]
        self._flat = [target for episode in self._targets for target in episode]
        self._recipe = recipe

    def gain(
        self, after: ScoredWorld, before: ScoredWorld, turn_filter: TurnFilter = is_any
    ) -> Estimate:
        """The difference in exact match; raises EngineError if no turn has a value of both."""
        difference = self._difference(EXACT, after, before, turn_filter)
        if difference is None:
            raise EngineError(
                "no held-out turn was answered by both engines that are compared; look at their"
                " logs"
            )
        return difference

    def smallest_lead(self, world: ScoredWorld, others: Iterable[ScoredWorld]) -> Estimate:
        """The smallest lead over any of the others, on all turns or on a harder part: the one with
        the lowest lower bound. A part without answered turns is left out; raises EngineError as
        `gain` does.
        """
        tags = tags_of(self._flat)
        filters = [is_any, *(has_tag(tag) for tag in (HISTORY, UNSEEN) if tag in tags)]
        leads = [
            self.gain(world, other, part)
            if part is is_any
            else self._difference(EXACT, world, other, part)
            for other in others
            for part in filters
        ]
        return min(filter(None, leads), key=lambda lead: lead.low)

    def leads(self, world: ScoredWorld, baselines: Mapping[str, ScoredWorld]) -> dict[str, Figures]:
        """The lead over each baseline on all turns, except baselines without comparable turns."""
        leads = {name: self._figures(world, baseline) for name, baseline in baselines.items()}
        return {name: figures for name, figures in leads.items() if figures}

    def gain_over(self, before: str, after: ScoredWorld, other: ScoredWorld) -> Gain | None:
        """The gain of a stage over the stage before, in total, by tag and by kind; null if no turn
        can be compared.
        """
        total = self._figures(after, other)
        if total is None:
            return None
        tags = {
            tag: self._difference(EXACT, after, other, has_tag(tag)) for tag in tags_of(self._flat)
        }
        kinds = {kind: self._figures(after, other, has_kind(kind)) for kind in kinds_of(self._flat)}
        return Gain(
            **dict(total),
            over=before,
            by_tag={tag: difference for tag, difference in tags.items() if difference},
            by_kind={kind: figures for kind, figures in kinds.items() if figures},
        )

    def _figures(
        self, after: ScoredWorld, before: ScoredWorld, turn_filter: TurnFilter = is_any
    ) -> Figures | None:
        exact = self._difference(EXACT, after, before, turn_filter)
        if exact is None:
            return None
        names = sorted(after.values.keys() & before.values.keys())
        metrics = {name: self._difference(name, after, before, turn_filter) for name in names}
        return Figures(
            exact_match=exact,
            metrics={name: difference for name, difference in metrics.items() if difference},
        )

    def _difference(
        self, metric: str, after: ScoredWorld, before: ScoredWorld, turn_filter: TurnFilter
    ) -> Estimate | None:
        """Null if no selected turn has a value of both."""
        first, second = (
            self._values(metric, episodes, turn_filter) for episodes in (after, before)
        )
        try:
            return estimate_difference(first, second, self._recipe.num_resamples, self._recipe.seed)
        except ValueError:
            return None

    def _values(
        self, metric: str, world: ScoredWorld, turn_filter: TurnFilter
    ) -> list[list[float | None]]:
        """By episode, the values of the selected turns."""
        values = world.exact if metric == EXACT else world.values[metric]
        return [
            [value for target, value in zip(*episode, strict=True) if turn_filter(target)]
            for episode in zip(self._targets, values, strict=True)
        ]
