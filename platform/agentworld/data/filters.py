"""What is left out of a data set, and why; each filter's removals are counted by its name."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import NamedTuple

from agentworld.domains.base import Domain, domain_of
from agentworld.records.base import Digest
from agentworld.records.trajectory import Trajectory, Turn


class FilteredTrajectory(NamedTuple):
    """A trajectory that passed."""

    digest: Digest
    """Of the trajectory as it was recorded, with the turns that were taken out."""
    trajectory: Trajectory


class TrajectoryFilter:
    """Lets a trajectory through, without its empty turns, once; `removed` counts the rest."""

    def __init__(self, min_turns: int) -> None:
        self._min_turns = min_turns
        self._hashes: set[int] = set()
        self.removed: Counter[str] = Counter()

    def apply(self, trajectories: Iterable[Trajectory]) -> Iterator[FilteredTrajectory]:
        """What is neither short nor a second copy; raises InputError for an unknown domain."""
        for trajectory in trajectories:
            turns = self._useful(domain_of(trajectory.domain), trajectory.turns)
            candidate = trajectory.model_copy(update={"turns": turns})
            if len(candidate.turns) < self._min_turns:
                self.removed["short trajectory"] += 1
            elif self._is_copy(candidate):
                self.removed["duplicate trajectory"] += 1
            else:
                yield FilteredTrajectory(trajectory.digest, candidate)

    def _useful(self, domain: Domain, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        acted = tuple(turn for turn in turns if turn.action.strip())
        useful = tuple(compress(acted, domain.keep(acted)))
        self.removed["empty action"] += len(turns) - len(acted)
        self.removed["turn without effect"] += len(acted) - len(useful)
        return useful

    def _is_copy(self, trajectory: Trajectory) -> bool:
        key = hash(_content(trajectory))
        if key in self._hashes:
            return True
        self._hashes.add(key)
        return False


def _content(trajectory: Trajectory) -> str:
    """What a trajectory shows, whoever made it from whatever seed."""
    turns = [(turn.action, turn.observation) for turn in trajectory.turns]
    return json.dumps([trajectory.domain, trajectory.initial_state, turns])
