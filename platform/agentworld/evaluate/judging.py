"""Verdicts over the turns of live episodes, whoever was asked for them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from agentworld.domains.base import Domain, is_match
from agentworld.evaluate.metrics import metric_of
from agentworld.evaluate.predict import NOTHING
from agentworld.records.sample import SampleTurn
from agentworld.records.trajectory import Turn


class Judged(NamedTuple):
    """A turn and its verdicts; null is a hole."""

    turn: SampleTurn
    exact: bool | None
    values: Mapping[str, float | None]
    """Of the other metrics."""


Episodes = Sequence[Sequence[Judged]]

Ask = Callable[[Sequence[Turn], str], Awaitable[str | None]]
"""What is shown after these turns for an action; null where nobody could be asked."""


class Judge:
    """Compares guesses with the truth, by exact match and by these metrics."""

    def __init__(self, metrics: Sequence[str]) -> None:
        """Raises InputError for a metric that is not there."""
        self._metrics = {name: metric_of(name) for name in metrics}

    def judge(self, domain: Domain, turn: SampleTurn, guess: str | None) -> Judged:
        """A guess compared with what the live environment showed."""
        if guess is None:
            return Judged(turn, None, {})
        truth = turn.observation
        values = {name: metric(domain, guess, truth) for name, metric in self._metrics.items()}
        is_exact = guess != NOTHING and is_match(domain, guess, truth)  # truths may be empty
        return Judged(turn, is_exact, values)


async def free_run(
    judge: Judge, domain: Domain, turns: Sequence[SampleTurn], ask: Ask
) -> list[Judged]:
    """Every turn of an episode; after a failure there is no history to go on from.

    The turns after an engine's failure are holes, those after the model's own are wrong.
    """
    history: list[Turn] = []
    guess: str | None = NOTHING
    judged: list[Judged] = []
    for turn in turns:
        if len(history) == len(judged):
            guess = await ask(history, turn.action)
        judged.append(judge.judge(domain, turn, guess))
        if guess:
            history.append(Turn(action=turn.action, observation=guess))
    return judged


def exact(episodes: Episodes, turn_filter: Callable[[SampleTurn], bool]) -> list[list[bool | None]]:
    """By episode, whether the turns that are wanted were right to every character."""
    return [[each.exact for each in episode if turn_filter(each.turn)] for episode in episodes]


def values_of(episodes: Episodes) -> dict[str, list[list[float | None]]]:
    """By metric and by episode, the values of its turns; a metric without any value is left out."""
    flat = (each for episode in episodes for each in episode)
    names = {name for each in flat for name, value in each.values.items() if value is not None}
    return {
        name: [[each.values.get(name) for each in episode] for episode in episodes]
        for name in sorted(names)
    }


def judged_tags(episodes: Episodes) -> list[str]:
    """The tags of which a turn got a verdict."""
    flat = (each for episode in episodes for each in episode)
    return sorted({tag for each in flat if each.exact is not None for tag in each.turn.tags})


def is_any(_: SampleTurn) -> bool:
    """Wants every turn."""
    return True


def has_tag(tag: str) -> Callable[[SampleTurn], bool]:
    """Wants the turns with a tag."""
    return lambda turn: tag in turn.tags
