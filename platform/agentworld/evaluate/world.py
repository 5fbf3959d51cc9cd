"""How often a world model predicts what a live environment did.

Teacher-forced: every target is asked with the recorded history before it, as the paper
does. Free-running: the history holds the model's own observations, as a simulator's does.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agentworld.engine.base import Engine
from agentworld.errors import EngineError, InputError
from agentworld.evaluate.bootstrap import estimate
from agentworld.evaluate.predict import NOTHING, Predictor
from agentworld.recipes.serve import EvaluateRecipe
from agentworld.records.progress import Tick
from agentworld.records.report import Estimate, WorldModelScore
from agentworld.records.sample import Sample, SampleTurn
from agentworld.records.simulator import Sampling
from agentworld.records.trajectory import Turn
from agentworld.scoring.match import exact_match
from agentworld.scoring.rules import verify

GREEDY = Sampling(temperature=0.0)


class _Judged(NamedTuple):
    """A turn and its verdicts; null is a hole."""

    turn: SampleTurn
    exact: bool | None
    rule: bool | None


_Episodes = Sequence[Sequence[_Judged]]


async def evaluate_world(
    predict: Engine,
    samples: Sequence[Sample],
    recipe: EvaluateRecipe,
    tick: Tick,
    sampling: Sampling = GREEDY,
) -> WorldModelScore:
    """Scores a predictor on held-out episodes.

    An answer that is cut off or holds no observation is the model's own failure and wrong. An
    engine that fails is ours: the turn is a hole, left out and counted. Raises EngineError
    where nothing was answered, and InputError where a score would be over no turn at all.
    """
    chosen = choose(samples, recipe.num_episodes, recipe.seed)
    rolled = chosen[: recipe.num_free_running]
    num_targets = sum(len(sample.targets) for sample in chosen)
    num_rolled = sum(len(sample.turns) for sample in rolled)
    predictor = Predictor(predict, sampling, tick, num_targets + num_rolled)
    judged = await asyncio.gather(*(_teacher_forced(predictor, each) for each in chosen))
    if all(each.exact is None for episode in judged for each in episode):
        raise EngineError(f"the engine answered none of {num_targets} turns: {predictor.problem}")
    free = await asyncio.gather(*(_free_running(predictor, each) for each in rolled))
    return _summary(judged, free, recipe)


def choose(samples: Sequence[Sample], num: int, seed: int) -> list[Sample]:
    """So many of the samples, or all; always the same for a seed."""
    return random.Random(f"evaluate {seed}").sample(samples, min(num, len(samples)))


async def _teacher_forced(predictor: Predictor, sample: Sample) -> list[_Judged]:
    turns = sample.turns
    predicted = await asyncio.gather(
        *(
            predictor.predict(sample.prompt, turns[:place], turns[place].action)
            for place in sample.targets
        )
    )
    places = zip(sample.targets, predicted, strict=True)
    return [_judge(turns[place], guess) for place, guess in places]


async def _free_running(predictor: Predictor, sample: Sample) -> list[_Judged]:
    """Every turn of an episode; after a failure there is no history to go on from.

    The turns after an engine's failure are holes, those after the model's own are wrong.
    """
    history: list[Turn] = []
    guess: str | None = NOTHING
    judged: list[_Judged] = []
    for turn in sample.turns:
        if len(history) == len(judged):
            guess = await predictor.predict(sample.prompt, history, turn.action)
        judged.append(_judge(turn, guess))
        if guess:
            history.append(Turn(action=turn.action, observation=guess))
    return judged


def _judge(turn: SampleTurn, guess: str | None) -> _Judged:
    if guess is None:
        return _Judged(turn, None, None)
    return _Judged(turn, exact_match(guess, turn.observation), verify(guess, turn.observation))


def _summary(judged: _Episodes, free: _Episodes, recipe: EvaluateRecipe) -> WorldModelScore:
    flat = [each for episode in judged for each in episode]
    classes = {each.turn.command_class for each in flat if each.exact is not None}

    def exact(what: str, wanted: Callable[[SampleTurn], bool]) -> Estimate:
        return _estimate(_exact(judged, wanted), what, recipe)

    return WorldModelScore(
        exact_match=exact("at all", _is_any),
        exact_match_state=exact("that depends on earlier ones", _is_of_state),
        exact_match_unseen=exact("with an unseen word", _is_of_unseen),
        rule=_estimate([[each.rule for each in each_of] for each_of in judged], "at all", recipe),
        by_class={name: exact(f"of class {name}", _is_of(name)) for name in sorted(classes)},
        free_running=_estimate(_exact(free, _is_any), "at all", recipe) if free else None,
    )


def _is_any(_: SampleTurn) -> bool:
    return True


def _is_of_state(turn: SampleTurn) -> bool:
    return turn.depends_on_history


def _is_of_unseen(turn: SampleTurn) -> bool:
    return turn.has_unseen_word


def _is_of(command_class: str) -> Callable[[SampleTurn], bool]:
    return lambda turn: turn.command_class == command_class


def _exact(episodes: _Episodes, wanted: Callable[[SampleTurn], bool]) -> list[list[bool | None]]:
    return [[each.exact for each in episode if wanted(each.turn)] for episode in episodes]


def _estimate(
    values: Sequence[Sequence[bool | None]], what: str, recipe: EvaluateRecipe
) -> Estimate:
    if all(value is None for episode in values for value in episode):
        raise InputError(
            f"no held-out turn {what} got a verdict; raise num_episodes, or look at the engine"
        )
    return estimate(values, recipe.num_resamples, recipe.seed)
