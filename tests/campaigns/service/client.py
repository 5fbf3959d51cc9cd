"""What clients play: episodes with a task and without, and actions with long answers."""

import random
from typing import NamedTuple

from agentworld.records.episode import EpisodeOpening
from campaigns.service import law
from make import records

_OUTPUT = "besa"


class Client:
    """Whoever plays; its name decides, with the seed, what it does."""

    def __init__(self, name: str, seed: str) -> None:
        self.name = name
        self.num_steps = 0
        """Those that it took."""
        self._random = random.Random(f"{name} {seed}")
        self._ending = False

    async def play(self) -> None:
        """Plays until it is told to end."""
        raise NotImplementedError

    def end(self) -> None:
        """It finishes what it must and begins nothing."""
        self._ending = True


class Plan(NamedTuple):
    """An episode as its client means to play it."""

    opening: EpisodeOpening
    actions: tuple[str, ...]
    """The same again whenever the client comes back to it."""


def draw(run: str, start: str, chance: random.Random) -> Plan:
    """An episode that nobody else plays: its start is its own."""
    limit = chance.randint(3, 10)
    actions = [_action(chance) for _ in range(limit)]
    ends = chance.random()
    if ends < 0.5:
        actions[chance.randrange(limit)] = f"echo {chance.choice((_OUTPUT, 'tane'))}"
    if ends < 0.7:
        success = {"closing": law.CLOSING, "output": _OUTPUT}
        task = records.task(initial_state=start, success=success, turn_limit=limit)
        opening = EpisodeOpening(run=run, task=task)
    else:
        opening = EpisodeOpening(run=run, initial_state=start, turn_limit=limit)
    return Plan(opening, tuple(actions))


def _action(chance: random.Random) -> str:
    return f"cat {'long' if chance.random() < 0.05 else 'rimo'}-{chance.randrange(1_000)}.txt"
