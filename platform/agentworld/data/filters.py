"""The filters of single trajectories; each removal is counted under its reason."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import NamedTuple

from agentworld.domains.base import domain_of
from agentworld.records.base import Digest
from agentworld.records.trajectory import Trajectory


class FilteredTrajectory(NamedTuple):
    """A trajectory that passed the filters."""

    digest: Digest
    """The digest of the recorded trajectory, including the removed turns."""
    trajectory: Trajectory


def filter_trajectories(
    trajectories: Iterable[Trajectory], min_turns: int, removed: Counter[str]
) -> Iterator[FilteredTrajectory]:
    """The trajectories with enough turns, without their empty turns.

    Raises InputError for an unknown domain.
    """
    for recorded in trajectories:
        trajectory = shorten(recorded, min_turns, removed)
        if trajectory is not None:
            yield FilteredTrajectory(recorded.digest, trajectory)


def shorten(trajectory: Trajectory, min_turns: int, removed: Counter[str]) -> Trajectory | None:
    """A trajectory without its empty turns, or null if too few remain; counts into `removed`."""
    action_turns = tuple(turn for turn in trajectory.turns if turn.action.strip())
    turns = tuple(compress(action_turns, domain_of(trajectory.domain).keep(action_turns)))
    removed["empty action"] += len(trajectory.turns) - len(action_turns)
    removed["turn without effect"] += len(action_turns) - len(turns)
    if len(turns) < min_turns:
        removed["short trajectory"] += 1
        return None
    return trajectory.model_copy(update={"turns": turns})
