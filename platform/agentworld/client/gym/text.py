"""The space of all texts. Gymnasium's own space requires a list of allowed characters."""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium.spaces import Space

from agentworld.errors import InputError

MAX_LENGTH = 2**24
"""More characters than a simulator returns, so no observation is truncated."""

_LONGEST_SAMPLE = 32
# ASCII, control characters, the rest of the first plane, the planes above it.
_CODE_POINTS = ((0x20, 0x7F), (0, 0x20), (0x7F, 0xD800), (0xE000, 0x10000), (0x10000, 0x110000))
# JSON reads two consecutive halves as one character
_BETWEEN_HALVES = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")


class UnicodeText(Space[str]):
    """Every text of at most `max_length` characters, including the empty text and control
    characters. A lone surrogate is allowed too, because a policy may write one. `sample` draws
    short texts without surrogates.
    """

    def __init__(
        self, max_length: int = MAX_LENGTH, seed: int | np.random.Generator | None = None
    ) -> None:
        if max_length < 0:
            raise InputError(f"no text has {max_length} characters; give 0 or more")
        self.max_length = max_length
        super().__init__(dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: a text is not an array."""
        return False

    def sample(self, mask: object = None, probability: object = None) -> str:
        """A text of at most 32 characters, each from a random one of the ranges of code points."""
        if mask is not None or probability is not None:
            raise InputError("texts are sampled without a mask or a probability; leave it out")
        random = self.np_random
        length = random.integers(min(self.max_length, _LONGEST_SAMPLE) + 1)
        ranges = [_CODE_POINTS[index] for index in random.integers(len(_CODE_POINTS), size=length)]
        return "".join(chr(random.integers(first, end)) for first, end in ranges)

    def contains(self, x: object) -> bool:
        """Whether it is a text of allowed length."""
        return isinstance(x, str) and len(x) <= self.max_length

    def to_jsonable(self, sample_n: Iterable[str]) -> list[Any]:
        """Texts unchanged; a text that JSON would change is split into parts."""
        pieces = (_BETWEEN_HALVES.split(text) for text in sample_n)
        return [first if not others else [first, *others] for first, *others in pieces]

    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        """The inverse of `to_jsonable`."""
        return ["".join(pieces) for pieces in sample_n]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and self.max_length == other.max_length

    def __hash__(self) -> int:
        return hash((UnicodeText, self.max_length))

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"
