"""Finds groups of trajectories with nearly the same words, by bands of MinHash signatures.

The share of equal places of two signatures estimates the Jaccard similarity of a pair (standard
error 0.03). A pair is compared if it has an equal band of eight places, as 99.99 % of the pairs at
0.9 have. For given trajectories, groups depend on their order only.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from rensa import RMinHash

from agentworld.data.n_grams import Hashes, n_grams

Signatures = npt.NDArray[np.uint32]
Mask = npt.NDArray[np.bool_]

NUM_PLACES = 128
_PLACES_PER_BAND = 8
_WORDS_PER_SHINGLE = 5
_FEWEST_SHINGLES = 10
_SEED = 42
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_PAIRS_AT_ONCE = 1 << 16
_MOST_GROUPS = 64
"""The limit of groups in one bucket: the first row of each is compared with all rows after it."""


def sign(words: Sequence[Hashes]) -> Signatures:
    """A signature for each text; zeros for a text that is too short to be compared."""
    shingles = [n_grams(hashes, _WORDS_PER_SHINGLE) for hashes in words]
    signatures = np.zeros((len(words), NUM_PLACES), np.uint32)
    long = [number for number, grams in enumerate(shingles) if len(grams) >= _FEWEST_SHINGLES]
    if long:
        offsets = np.cumsum([0, *(len(shingles[number]) for number in long)]).astype(np.uint64)
        flat = np.concatenate([shingles[number] for number in long])
        matrix = RMinHash.digest_matrix_from_flat_token_hashes(flat, offsets, NUM_PLACES, _SEED)
        signatures[long] = np.array(matrix.to_rows(), np.uint32)
    return signatures


def near_duplicates(signatures: Signatures, threshold: float) -> Mask:
    """For each row, whether it is in the group of an earlier row; the first of a group stays."""
    parents = list(range(len(signatures)))
    rows = np.flatnonzero(signatures.any(axis=1))
    for start in range(0, NUM_PLACES, _PLACES_PER_BAND):
        band = signatures[rows, start : start + _PLACES_PER_BAND]
        for first, other in _similar(signatures, rows, band, threshold):
            _unite(parents, first, other)
    return np.array([parent != row for row, parent in enumerate(parents)], np.bool_)


def _similar(
    signatures: Signatures, rows: npt.NDArray[np.intp], band: Signatures, threshold: float
) -> Iterator[tuple[int, int]]:
    """Pairs of similar rows: the first row of each bucket with the others, then again the rest."""
    bucket = _fold(band)
    for _ in range(_MOST_GROUPS):
        if not len(rows):
            return
        _, first_places, inverse = np.unique(bucket, return_index=True, return_inverse=True)
        first_rows = rows[first_places[inverse]]
        is_other = first_rows != rows
        rows, bucket, first_rows = rows[is_other], bucket[is_other], first_rows[is_other]
        is_near = np.zeros(len(rows), np.bool_)
        for start in range(0, len(rows), _PAIRS_AT_ONCE):
            batch = slice(start, start + _PAIRS_AT_ONCE)
            equal = signatures[rows[batch]] == signatures[first_rows[batch]]
            is_near[batch] = equal.mean(axis=1) >= threshold
        yield from zip(first_rows[is_near].tolist(), rows[is_near].tolist(), strict=True)
        rows, bucket = rows[~is_near], bucket[~is_near]


def _fold(band: Signatures) -> Hashes:
    """Hashes each row to one number."""
    total = np.zeros(len(band), np.uint64)
    for column in band.T:
        total = (total ^ column) * _FACTOR
    return total


def _unite(parents: list[int], row: int, other_row: int) -> None:
    first, second = sorted((_root(parents, row), _root(parents, other_row)))
    parents[second] = first


def _root(parents: list[int], row: int) -> int:
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row
