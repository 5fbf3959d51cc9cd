"""The order of faults, which one seed decides."""

import random
from collections.abc import Iterator, Mapping
from typing import TypeVar

_Fault = TypeVar("_Fault")


def shuffled(shares: Mapping[_Fault, int], seed: str) -> Iterator[_Fault]:
    """Faults without an end: hand after hand, each with every one as often as its share says."""
    chance = random.Random(f"schedule {seed}")
    while True:
        hand = [fault for fault, share in shares.items() for _ in range(share)]
        chance.shuffle(hand)
        yield from hand
