"""Random numbers that depend on names only, so that one sample never affects another.

With a random generator, one more sample would change the numbers of all samples after it.
"""

import hashlib


def hash_uniform(*names: object) -> float:
    """A number in [0, 1), uniform over names and always the same for the same names."""
    text = "\x1f".join(map(str, names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
