"""The filters of single trajectories; each removal is counted under its reason."""

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
    """Lets a trajectory through without its empty turns; `removed` counts the rest."""

    def __init__(self, min_turns: int) -> None:
        self._min_turns = min_turns
        self.removed: Counter[str] = Counter()

    def apply(self, trajectories: Iterable[Trajectory]) -> Iterator[FilteredTrajectory]:
        """What is long enough; raises InputError for an unknown domain."""
        for recorded in trajectories:
            trajectory = self.shorten(recorded)
            if trajectory is not None:
                yield FilteredTrajectory(recorded.digest, trajectory)

    def shorten(self, trajectory: Trajectory) -> Trajectory | None:
        """A trajectory without its empty turns, or nothing where too few are left."""
        turns = self._useful(domain_of(trajectory.domain), trajectory.turns)
        if len(turns) < self._min_turns:
            self.removed["short trajectory"] += 1
            return None
        return trajectory.model_copy(update={"turns": turns})

    def _useful(self, domain: Domain, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        action_turns = tuple(turn for turn in turns if turn.action.strip())
        useful = tuple(compress(action_turns, domain.keep(action_turns)))
        self.removed["empty action"] += len(turns) - len(action_turns)
        self.removed["turn without effect"] += len(action_turns) - len(useful)
        return useful
