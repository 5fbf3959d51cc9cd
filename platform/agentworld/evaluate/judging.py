"""Verdicts over the turns of live episodes, whoever was asked for them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from agentworld.evaluate.predict import NOTHING
from agentworld.records.sample import SampleTurn
from agentworld.records.trajectory import Turn
from agentworld.scoring.match import exact_match
from agentworld.scoring.rules import verify


class Judged(NamedTuple):
    """A turn and its verdicts; null is a hole."""

    turn: SampleTurn
    exact: bool | None
    rule: bool | None


Episodes = Sequence[Sequence[Judged]]

Ask = Callable[[Sequence[Turn], str], Awaitable[str | None]]
"""What is shown after these turns for an action; null where nobody could be asked."""


def judge(turn: SampleTurn, guess: str | None) -> Judged:
    """Holds a guess against what the live environment showed."""
    if guess is None:
        return Judged(turn, None, None)
    return Judged(turn, exact_match(guess, turn.observation), verify(guess, turn.observation))


async def free_run(turns: Sequence[SampleTurn], ask: Ask) -> list[Judged]:
    """Every turn of an episode; after a failure there is no history to go on from.

    The turns after an engine's failure are holes, those after the model's own are wrong.
    """
    history: list[Turn] = []
    guess: str | None = NOTHING
    judged: list[Judged] = []
    for turn in turns:
        if len(history) == len(judged):
            guess = await ask(history, turn.action)
        judged.append(judge(turn, guess))
        if guess:
            history.append(Turn(action=turn.action, observation=guess))
    return judged


def exact(episodes: Episodes, turn_filter: Callable[[SampleTurn], bool]) -> list[list[bool | None]]:
    """By episode, whether the turns that are wanted were right to every character."""
    return [[each.exact for each in episode if turn_filter(each.turn)] for episode in episodes]


def rule(episodes: Episodes) -> list[list[bool | None]]:
    """By episode, what the rule verifier says of its turns."""
    return [[each.rule for each in episode] for episode in episodes]


def judged_classes(episodes: Episodes) -> list[str]:
    """The command classes of which a turn got a verdict."""
    flat = (each for episode in episodes for each in episode)
    return sorted({each.turn.command_class for each in flat if each.exact is not None})


def is_any(_: SampleTurn) -> bool:
    """Wants every turn."""
    return True


def is_of(command_class: str) -> Callable[[SampleTurn], bool]:
    """Wants the turns of a command class."""
    return lambda turn: turn.command_class == command_class


def is_of_state(turn: SampleTurn) -> bool:
    """Wants the turns that need memory."""
    return turn.depends_on_history


def is_of_unseen(turn: SampleTurn) -> bool:
    """Wants the turns with a word that no training saw."""
    return turn.has_unseen_word
