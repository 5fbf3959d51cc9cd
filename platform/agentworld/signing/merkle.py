"""The Merkle tree hash of RFC 6962 section 2.1: one digest over all entries of a log.

A changed, missing, added or moved entry gives another root. Leaves and inner nodes are hashed with
different prefixes, so neither can be passed off as the other.
"""

import hashlib
from collections.abc import Iterable

from agentworld.records.base import Digest

_LEAF = b"\x00"
_NODE = b"\x01"


class MerkleTree:
    """The tree of an append-only log; it keeps one hash for each bit of its length instead of the
    leaves.

    Adding a leaf takes constant time on average, and the root costs one hash for each of these.
    """

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self._length = 0
        self._peaks: list[bytes] = []  # roots of complete subtrees, the largest first
        for leaf in leaves:
            self.append(leaf)

    def __len__(self) -> int:
        return self._length

    def append(self, leaf: bytes) -> None:
        """Appends an entry; each trailing 1 bit of the length is a subtree that it completes."""
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
