import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.records.base import digest_bytes
from agentworld.signing.merkle import MerkleTree, merkle_root

LOGS = st.lists(st.binary(max_size=40), max_size=70)
NONEMPTY_LOGS = st.lists(st.binary(max_size=3), min_size=1, max_size=20)


def rfc_root(leaves: list[bytes]) -> bytes:
    """The definition of RFC 6962, section 2.1."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + rfc_root(leaves[:k]) + rfc_root(leaves[k:])).digest()


KNOWN_LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657"]
KNOWN_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
]


@pytest.mark.parametrize(("length", "root"), enumerate(KNOWN_ROOTS))
def test_roots_match_the_certificate_transparency_test_vectors(length, root):
    leaves = [bytes.fromhex(leaf) for leaf in KNOWN_LEAVES[:length]]
    assert merkle_root(leaves) == f"sha256:{root}"


@given(LOGS)
def test_the_root_matches_the_definition_of_rfc_6962(leaves):
    assert merkle_root(leaves) == f"sha256:{rfc_root(leaves).hex()}"


@pytest.mark.compute
@given(LOGS)
def test_a_growing_tree_has_the_root_of_each_prefix(leaves):
    tree = MerkleTree()
    for length, leaf in enumerate(leaves):
        assert (len(tree), tree.root) == (length, merkle_root(leaves[:length]))
        tree.append(leaf)


@pytest.mark.compute
@given(NONEMPTY_LOGS, st.data())
def test_a_changed_entry_gives_another_root(leaves, data):
    index = data.draw(st.integers(0, len(leaves) - 1))
    other_leaf = data.draw(st.binary(max_size=3).filter(lambda leaf: leaf != leaves[index]))
    changed_leaves = [*leaves[:index], other_leaf, *leaves[index + 1 :]]
    assert merkle_root(changed_leaves) != merkle_root(leaves)


@given(NONEMPTY_LOGS, st.data())
def test_an_entry_left_out_or_doubled_gives_another_root(leaves, data):
    index = data.draw(st.integers(0, len(leaves) - 1))
    root = merkle_root(leaves)
    assert merkle_root([*leaves[:index], *leaves[index + 1 :]]) != root
    assert merkle_root([*leaves[: index + 1], *leaves[index:]]) != root


def test_an_inner_node_as_an_entry_gives_another_root():
    left, right = (hashlib.sha256(b"\x00" + leaf).digest() for leaf in (b"a", b"b"))
    root = merkle_root([b"a", b"b"])
    assert merkle_root([left + right]) != root
    assert digest_bytes(b"\x01" + left + right) == root


@given(st.integers(0, 3_000))
def test_a_tree_keeps_one_hash_for_each_bit_of_its_length(length):
    tree = MerkleTree([b"entry"] * length)
    assert len(tree._peaks) == length.bit_count()
