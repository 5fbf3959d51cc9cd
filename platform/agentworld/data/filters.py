"""What is left out of a data set, and why; each filter's removals are counted by its name."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agentworld.domains.terminal.grammar import read_screen
from agentworld.domains.terminal.prompts import DOMAIN
from agentworld.errors import InputError
from agentworld.records.base import Digest
from agentworld.records.trajectory import Trajectory, Turn

_UNKNOWN_COMMAND = 127


class FilteredTrajectory(NamedTuple):
    """A trajectory that passed."""

    digest: Digest
    """Of the trajectory as it was recorded, with the turns that were taken out."""
    trajectory: Trajectory


class Sieve:
    """Lets a trajectory through, without its empty turns, once; `removed` counts the rest."""

    def __init__(self, min_turns: int) -> None:
        self._min_turns = min_turns
        self._hashes: set[int] = set()
        self.removed: Counter[str] = Counter()

    def pass_on(self, trajectories: Iterable[Trajectory]) -> Iterator[FilteredTrajectory]:
        """What is neither short nor a second copy."""
        for trajectory in trajectories:
            if trajectory.domain != DOMAIN:
                raise InputError(
                    f"a trajectory is of the domain {trajectory.domain!r}, which has no grammar"
                    f" here; keep those of {DOMAIN!r}"
                )
            candidate = trajectory.model_copy(update={"turns": self._useful(trajectory.turns)})
            if len(candidate.turns) < self._min_turns:
                self.removed["short trajectory"] += 1
            elif self._is_copy(candidate):
                self.removed["duplicate trajectory"] += 1
            else:
                yield FilteredTrajectory(trajectory.digest, candidate)

    def _useful(self, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        acted = tuple(turn for turn in turns if turn.action.strip())
        useful = tuple(skip_retries(acted))
        self.removed["empty action"] += len(turns) - len(acted)
        self.removed["retried unknown command"] += len(acted) - len(useful)
        return useful

    def _is_copy(self, trajectory: Trajectory) -> bool:
        key = hash(_content(trajectory))
        if key in self._hashes:
            return True
        self._hashes.add(key)
        return False


def skip_retries(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Without the second of two equal turns whose command is unknown (section 3.1.2).

    Such a command changes nothing, and so the later turns keep a true history.
    """
    last = None
    for turn in turns:
        is_retry = turn == last and read_screen(turn.observation).status == _UNKNOWN_COMMAND
        if not is_retry:
            yield turn
        last = turn


def _content(trajectory: Trajectory) -> str:
    """What a trajectory shows, whoever made it from whatever seed."""
    turns = [(turn.action, turn.observation) for turn in trajectory.turns]
    return json.dumps([trajectory.initial_state, turns])
