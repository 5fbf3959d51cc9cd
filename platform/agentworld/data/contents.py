"""What makes two trajectories copies of each other, and which of many are copies.

A key is 8 bytes, however many there are. Two different texts count as one with a chance of 2 to the
power of -64 for each pair.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from agentworld.records.trajectory import Trajectory

COPY = "duplicate trajectory"
_MOST_RECENT = 1 << 16


class Contents:
    """A set of texts, or of trajectories by what happened in them, whoever wrote it down.

    The newest keys are in a Python set, of some 4 MiB at most, all others in a sorted array. While
    the one is merged into the other there are two arrays.
    """

    def __init__(self) -> None:
        self._sorted: NDArray[np.uint64] = np.array([], dtype=np.uint64)
        self._recent: set[int] = set()

    def add(self, trajectory: Trajectory) -> bool:
        """Adds one; false where it was there."""
        return self.add_key(content_key(trajectory))

    def add_text(self, text: str) -> bool:
        """The same of a text."""
        return self.add_key(_key([text]))

    def add_key(self, key: int) -> bool:
        """The same of a number below 2 to the power of 64."""
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
        """Of the array."""
        return self._sorted.nbytes

    def _is_sorted_in(self, key: int) -> bool:
        place = int(np.searchsorted(self._sorted, np.uint64(key)))
        return place < len(self._sorted) and int(self._sorted[place]) == key


def are_copies(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which of these keys of contents stand before, of all at once."""
    _, firsts = np.unique(keys, return_index=True)
    copies = np.ones(len(keys), np.bool_)
    copies[firsts] = False
    return copies


def content_key(trajectory: Trajectory) -> int:
    """64 bits of what a trajectory shows, whoever made it from whatever seed."""
    texts = [trajectory.domain, trajectory.initial_state]
    for turn in trajectory.turns:
        texts += turn.action, turn.observation
    return _key(texts)


def _key(texts: Iterable[str]) -> int:
    """Of each with its length, so that no two lists of texts run together."""
    digest = hashlib.blake2b(digest_size=8)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return int.from_bytes(digest.digest(), "big")
