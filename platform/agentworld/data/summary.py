"""Counts the content of a data set while it is made; each worker counts, and the counts add up."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypedDict

from agentworld.records.dataset import UNSTATED, Lengths
from agentworld.records.trajectory import Trajectory


class SummaryFields(TypedDict):
    """The counted fields of a data set's manifest."""

    num_read: int
    domains: dict[str, int]
    sources: dict[str, int]
    licences: dict[str, int]
    lengths: Lengths


class Summary:
    """Counts the trajectories that were read, and those in the pools."""

    def __init__(self) -> None:
        self._num_read = 0
        self._domains = Counter[str]()
        self._sources = Counter[str]()
        self._licences = Counter[str]()
        self._turns = Counter[int]()
        self._action = Counter[int]()
        self._observation = Counter[int]()

    def read(self, trajectories: Iterable[Trajectory]) -> Iterator[Trajectory]:
        """Yields the trajectories unchanged, and counts them."""
        for trajectory in trajectories:
            self._num_read += 1
            yield trajectory

    def add(self, trajectory: Trajectory) -> None:
        """Counts a trajectory that became a sample."""
        self._domains[trajectory.domain] += 1
        self._sources[trajectory.source] += 1
        self._licences[trajectory.licence or UNSTATED] += 1
        self._turns[len(trajectory.turns).bit_length()] += 1
        self._action.update(len(turn.action).bit_length() for turn in trajectory.turns)
        self._observation.update(len(turn.observation).bit_length() for turn in trajectory.turns)

    def merge(self, other: "Summary") -> None:
        """Adds the counts of another part of the same data set."""
        self._num_read += other._num_read
        self._domains += other._domains
        self._sources += other._sources
        self._licences += other._licences
        self._turns += other._turns
        self._action += other._action
        self._observation += other._observation

    def fields(self) -> SummaryFields:
        """The counts as fields of the manifest."""
        return {
            "num_read": self._num_read,
            "domains": dict(sorted(self._domains.items())),
            "sources": dict(sorted(self._sources.items())),
            "licences": dict(sorted(self._licences.items())),
            "lengths": Lengths(
                turns=_histogram(self._turns),
                action=_histogram(self._action),
                observation=_histogram(self._observation),
            ),
        }


def _histogram(counts: Counter[int]) -> tuple[int, ...]:
    return tuple(counts[digits] for digits in range(max(counts, default=-1) + 1))
