"""N-grams: hashes of consecutive words, by which two texts are compared.

A word is a run of letters and digits in lower case; an ideograph is a word by itself.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from rensa import RMinHash

from agentworld.records.trajectory import Exchange

Hashes = npt.NDArray[np.uint64]

_WORD = re.compile("[\u2e80-\u9fff]|[^\\W\u2e80-\u9fff]+")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_MIXER = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(31)


def text_of(turns: Iterable[Exchange]) -> str:
    """The actions and observations of a trajectory, in order."""
    return "\n".join(part for turn in turns for part in (turn.action, turn.observation))


def hash_words(texts: Sequence[str]) -> list[Hashes]:
    """The hashes of the words of each text."""
    words = [_WORD.findall(text.lower()) for text in texts]
    return [np.array(hashes, np.uint64) for hashes in RMinHash.hash_token_sets(words)]


def n_grams(words: Hashes, length: int) -> Hashes:
    """The different n-grams in ascending order; none if the text has fewer words."""
    count = len(words) - length + 1
    if count < 1:
        return words[:0]
    mixed = _mix(words)
    total = mixed[:count].copy()
    for offset in range(1, length):
        total *= _FACTOR
        total += mixed[offset : offset + count]
    return np.unique(_mix(total))


def _mix(hashes: Hashes) -> Hashes:
    """Mixes the bits of a hash, so that every bit of the result depends on all bits."""
    mixed = (hashes ^ (hashes >> _SHIFT)) * _MIXER
    return mixed ^ (mixed >> _SHIFT)
