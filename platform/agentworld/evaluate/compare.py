"""How much better one predictor is than another, on the same turns: a difference has an interval.

Turns are compared in pairs, so that what makes a turn hard for both is no noise of the difference.
"""

from collections.abc import Callable, Iterable, Sequence

from agentworld.domains.base import HISTORY, UNSEEN
from agentworld.errors import EngineError
from agentworld.evaluate.bootstrap import estimate_difference
from agentworld.evaluate.judging import has_tag, is_any
from agentworld.evaluate.world import ScoredWorld, choose
from agentworld.recipes.serve import EvaluateRecipe
from agentworld.records.report import Estimate
from agentworld.records.sample import Sample, SampleTurn

_TurnFilter = Callable[[SampleTurn], bool]


class Comparison:
    """Of predictors that were scored on these samples by this recipe."""

    def __init__(self, samples: Sequence[Sample], recipe: EvaluateRecipe) -> None:
        self._samples = choose(samples, recipe.num_episodes, recipe.seed)
        self._recipe = recipe

    def gain(
        self, after: ScoredWorld, before: ScoredWorld, turn_filter: _TurnFilter = is_any
    ) -> Estimate:
        """Exact match of one less that of the other; raises EngineError where no turn has both."""
        try:
            return estimate_difference(
                self._of(after, turn_filter),
                self._of(before, turn_filter),
                self._recipe.num_resamples,
                self._recipe.seed,
            )
        except ValueError as error:
            raise EngineError(
                "no held-out turn was answered by both engines that are compared; look at their"
                " logs"
            ) from error

    def smallest_lead(self, of: ScoredWorld, others: Iterable[ScoredWorld]) -> Estimate:
        """Over any of the others, on all turns or on a harder part: that which begins lowest."""
        tags = {tag for sample in self._samples for turn in sample.turns for tag in turn.tags}
        kinds = [is_any, *(has_tag(tag) for tag in (HISTORY, UNSEEN) if tag in tags)]
        leads = [self.gain(of, other, kind) for other in others for kind in kinds]
        return min(leads, key=lambda lead: lead.low)

    def _of(self, scored: ScoredWorld, turn_filter: _TurnFilter) -> list[list[bool | None]]:
        """By episode, the verdicts of the turns that are wanted."""
        return [
            [
                verdict
                for place, verdict in zip(sample.targets, verdicts, strict=True)
                if turn_filter(sample.turns[place])
            ]
            for sample, verdicts in zip(self._samples, scored.exact, strict=True)
        ]
