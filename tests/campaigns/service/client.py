"""Clients' episodes: with a task and without, and actions with long responses."""

import random
from typing import NamedTuple

from agentworld.records.episode import EpisodeOpening
from campaigns.service import law
from make import records

_OUTPUT = "besa"


class Client:
    """A client; its name and the seed determine its actions."""

    def __init__(self, name: str, seed: str) -> None:
        self.name = name
        self.num_steps = 0
        """Steps so far."""
        self._random = random.Random(f"{name} {seed}")
        self._ending = False

    async def play(self) -> None:
        """Plays until it is ended."""
        raise NotImplementedError

    def end(self) -> None:
        """Completes open work and begins nothing new."""
        self._ending = True


class Plan(NamedTuple):
    """A client's plan for an episode."""

    opening: EpisodeOpening
    actions: tuple[str, ...]
    """The same again after a restart."""


def draw(run: str, start: str, chance: random.Random) -> Plan:
    """A unique episode: no other has its start."""
    limit = chance.randint(3, 10)
    actions = [_action(chance) for _ in range(limit)]
    kind = chance.random()
    if kind < 0.5:
        actions[chance.randrange(limit)] = f"echo {chance.choice((_OUTPUT, 'tane'))}"
    if kind < 0.7:
        success = {"closing": law.CLOSING, "output": _OUTPUT}
        task = records.task(initial_state=start, success=success, turn_limit=limit)
        opening = EpisodeOpening(run=run, task=task)
    else:
        opening = EpisodeOpening(run=run, initial_state=start, turn_limit=limit)
    return Plan(opening, tuple(actions))


def _action(chance: random.Random) -> str:
    return f"cat {'long' if chance.random() < 0.05 else 'rimo'}-{chance.randrange(1_000)}.txt"
