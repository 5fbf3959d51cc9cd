"""Verdicts over the turns of live episodes, whoever was asked for them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from agentworld.domains.base import Domain, is_match, verdict_of
from agentworld.evaluate.predict import NOTHING
from agentworld.records.sample import SampleTurn
from agentworld.records.trajectory import Turn


class Judged(NamedTuple):
    """A turn and its verdicts; null is a hole."""

    turn: SampleTurn
    exact: bool | None
    rule: bool | None


Episodes = Sequence[Sequence[Judged]]

Ask = Callable[[Sequence[Turn], str], Awaitable[str | None]]
"""What is shown after these turns for an action; null where nobody could be asked."""


def judge(domain: Domain, turn: SampleTurn, guess: str | None) -> Judged:
    """Holds a guess against what the live environment showed."""
    if guess is None:
        return Judged(turn, None, None)
    truth = turn.observation
    return Judged(turn, is_match(domain, guess, truth), verdict_of(domain, guess, truth))


async def free_run(domain: Domain, turns: Sequence[SampleTurn], ask: Ask) -> list[Judged]:
    """Every turn of an episode; after a failure there is no history to go on from.

    The turns after an engine's failure are holes, those after the model's own are wrong.
    """
    history: list[Turn] = []
    guess: str | None = NOTHING
    judged: list[Judged] = []
    for turn in turns:
        if len(history) == len(judged):
            guess = await ask(history, turn.action)
        judged.append(judge(domain, turn, guess))
        if guess:
            history.append(Turn(action=turn.action, observation=guess))
    return judged


def exact(episodes: Episodes, turn_filter: Callable[[SampleTurn], bool]) -> list[list[bool | None]]:
    """By episode, whether the turns that are wanted were right to every character."""
    return [[each.exact for each in episode if turn_filter(each.turn)] for episode in episodes]


def rule(episodes: Episodes) -> list[list[bool | None]] | None:
    """By episode, what the domain's rules say of its turns; null where they say nothing at all."""
    verdicts = [[each.rule for each in episode] for episode in episodes]
    return verdicts if any(each is not None for episode in verdicts for each in episode) else None


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
