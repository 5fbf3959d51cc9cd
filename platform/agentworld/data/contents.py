"""Finds trajectories that are copies of each other, by a key of 8 bytes for each.

Two different texts get the same key with a probability of 2^-64 for each pair.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from agentworld.records.trajectory import Trajectory

COPY = "duplicate trajectory"
_MOST_RECENT = 1 << 16


class Contents:
    """A set of texts, or of trajectories compared by domain, start and turns.

    The newest keys are in a Python set of at most about 4 MiB, all others in a sorted array. To
    merge the set into the array needs memory for a second array.
    """

    def __init__(self) -> None:
        self._sorted: NDArray[np.uint64] = np.array([], dtype=np.uint64)
        self._recent: set[int] = set()

    def add(self, trajectory: Trajectory) -> bool:
        """Adds a trajectory; false if it was in the set already."""
        return self.add_key(content_key(trajectory))

    def add_text(self, text: str) -> bool:
        """The same for a text."""
        return self.add_key(_key([text]))

    def add_key(self, key: int) -> bool:
        """The same for a key, a number below 2^64."""
        if key in self._recent or self._is_sorted_in(key):
            return False
        self._recent.add(key)
        if len(self._recent) == _MOST_RECENT:
            recent = np.fromiter(self._recent, dtype=np.uint64, count=_MOST_RECENT)
            self._sorted = np.concatenate([self._sorted, recent])
            self._sorted.sort(kind="stable")
            self._recent = set()
        return True

    @property
    def num_bytes(self) -> int:
        """The size of the array in bytes."""
        return self._sorted.nbytes

    def _is_sorted_in(self, key: int) -> bool:
        place = int(np.searchsorted(self._sorted, np.uint64(key)))
        return place < len(self._sorted) and int(self._sorted[place]) == key


def are_copies(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """For each key, whether an earlier place of the array has the same key."""
    _, firsts = np.unique(keys, return_index=True)
    copies = np.ones(len(keys), np.bool_)
    copies[firsts] = False
    return copies


def content_key(trajectory: Trajectory) -> int:
    """64 bits of a trajectory's content; its source and its seed do not count."""
    texts = [trajectory.domain, trajectory.initial_state]
    for turn in trajectory.turns:
        texts += turn.action, turn.observation
    return _key(texts)


def _key(texts: Iterable[str]) -> int:
    """A key of texts and their lengths, so that texts divided otherwise have another key."""
    digest = hashlib.blake2b(digest_size=8)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return int.from_bytes(digest.digest(), "big")
