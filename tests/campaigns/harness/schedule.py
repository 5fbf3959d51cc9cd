"""A random order of faults, from a seed."""

import random
from collections.abc import Iterator, Mapping
from typing import TypeVar

_Fault = TypeVar("_Fault")


def shuffled(shares: Mapping[_Fault, int], seed: str) -> Iterator[_Fault]:
    """An endless sequence of faults, shuffled in rounds in which each occurs as often as its
    share.
    """
    chance = random.Random(f"schedule {seed}")
    while True:
        faults = [fault for fault, share in shares.items() for _ in range(share)]
        chance.shuffle(faults)
        yield from faults
