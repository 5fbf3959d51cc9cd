"""Explorers that choose actions without looking at observations.

They act by what they believe of the world, which is its start and their own actions.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from random import Random

from agentworld.domains.live import Observation

_DETOURS = _MISTAKES = 0.2


class ScriptedExplorer:
    """Takes actions from an iterator, at most so many."""

    def __init__(self, actions: Iterator[str], num_turns: int) -> None:
        self._actions = islice(actions, num_turns)

    def act(self, _observation: Observation | None) -> str | None:
        """The next action; null after the last one."""
        return next(self._actions, None)


def pursue(
    rng: Random, steps: Iterable[str], detours: Iterator[str], perturb: Callable[[str], str]
) -> Iterator[str]:
    """The steps of a task, with a detour before one in five and a mistake in one in five.

    So an agent can learn from them what an instruction means, and much is left to learn.
    """
    for step in steps:
        while rng.random() < _DETOURS:
            yield next(detours)
        yield perturb(step) if rng.random() < _MISTAKES else step
