"""The Merkle tree hash of RFC 6962 section 2.1: one digest over all entries of a log.

An entry that was changed, left out, added or moved gives another root. A leaf and an inner
node are hashed with different prefixes, so that neither can be shown as the other.
"""

import hashlib
from collections.abc import Iterable

from agentworld.records.base import Digest

_LEAF = b"\x00"
_NODE = b"\x01"


class MerkleTree:
    """The tree of a log that only grows; it keeps no leaf, but one hash for each bit of its length.

    A leaf is added in constant time on average, and the root costs one hash for each of these.
    """

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self._length = 0
        self._peaks: list[bytes] = []  # roots of complete subtrees, the largest first
        for leaf in leaves:
            self.append(leaf)

    def __len__(self) -> int:
        return self._length

    def append(self, leaf: bytes) -> None:
        """Adds the next entry; each 1 at the end of the length is a subtree that it completes."""
        node = hashlib.sha256(_LEAF + leaf).digest()
        length = self._length
        while length & 1:
            node = _parent(self._peaks.pop(), node)
            length >>= 1
        self._peaks.append(node)
        self._length += 1

    @property
    def root(self) -> Digest:
        """The digest of all entries in their order."""
        if not self._peaks:
            return _digest(hashlib.sha256().digest())
        *larger, node = self._peaks
        for peak in reversed(larger):
            node = _parent(peak, node)
        return _digest(node)


def merkle_root(leaves: Iterable[bytes]) -> Digest:
    """The root of a whole log."""
    return MerkleTree(leaves).root


def _parent(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(_NODE + left + right).digest()


def _digest(node: bytes) -> Digest:
    return f"sha256:{node.hex()}"
