"""Chance that depends on nothing but its names, so that a sample's fate never does either.

A generator that is drawn from in turn would give every sample another fate as soon as one
sample is added before it.
"""

import hashlib


def hash_uniform(*names: object) -> float:
    """A number in [0, 1), uniform over names and always the same for the same names."""
    text = "\x1f".join(map(str, names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
