"""Batches of rows of similar length, so that little of a batch is padding."""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

from agentworld.train.encode import Row

_SORTED_TOGETHER = 512
_ROUND_TO = 8  # whole vectors of a processor; a tenth of a batch is padding with 32
NO_ROW = Row(np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.bool_))
"""The row for a process that gets no row of a batch."""
NO_TARGET = -100
"""In `targets`: the token after this one is not to be predicted."""


class Rows(Dataset[Row]):
    """Rows in memory, by their numbers."""

    def __init__(self, rows: Mapping[int, Row] | Sequence[Row]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.rows[index]


def width(length: int) -> int:
    """The number of tokens that a row of this length takes in a batch."""
    return -(-length // _ROUND_TO) * _ROUND_TO


class BatchTokens(NamedTuple):
    """Token counts of some batches."""

    num_tokens: int
    """Without padding."""
    num_computed: int
    """With padding."""
    sum_of_squares: int
    """The sum of the squares of the rows' lengths."""
    num_rows: int


class TokenBatches(Sampler[list[int]]):
    """Batches with a limit of tokens, for all epochs in order.

    Padded rows are grouped with rows of similar length; packed rows fill a batch by best fit. The
    order depends only on the seed, so that a resumed run can skip finished batches.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        tokens_per_batch: int,
        epochs: float,
        seed: int,
        *,
        packed: bool = False,
    ) -> None:
        self._lengths = lengths
        self._tokens = tokens_per_batch
        self._packed = packed
        self._cut = self._fill if packed else self._cut_by_length
        rng = random.Random(seed)
        passes = [self._one_epoch(rng) for _ in range(math.ceil(epochs))]
        num_batches = max(1, round(len(passes[0]) * epochs))
        self._batches = [batch for epoch in passes for batch in epoch][:num_batches]

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._batches)

    def tokens(self, first: int, last: int) -> BatchTokens:
        """The counts of the batches `first` to `last - 1`, for one process."""
        batches = [[self._lengths[index] for index in batch] for batch in self._batches[first:last]]
        num_tokens = sum(map(sum, batches))
        num_padded = sum(len(batch) * width(max(batch, default=0)) for batch in batches)
        sum_of_squares = sum(length**2 for batch in batches for length in batch)
        num_computed = num_tokens if self._packed else num_padded
        return BatchTokens(num_tokens, num_computed, sum_of_squares, sum(map(len, batches)))

    def _one_epoch(self, rng: random.Random) -> list[list[int]]:
        order = rng.sample(range(len(self._lengths)), len(self._lengths))
        batches: list[list[int]] = []
        for start in range(0, len(order), _SORTED_TOGETHER):
            window = order[start : start + _SORTED_TOGETHER]
            batches += self._cut(sorted(window, key=self._lengths.__getitem__))
        rng.shuffle(batches)
        return batches

    def _cut_by_length(self, ascending: list[int]) -> list[list[int]]:
        batches: list[list[int]] = [[]]
        for index in ascending:
            if batches[-1] and (len(batches[-1]) + 1) * width(self._lengths[index]) > self._tokens:
                batches.append([])
            batches[-1].append(index)
        is_lone = len(batches) > 1 and len(batches[-1]) == 1 < len(batches[-2]) - 1
        if is_lone and 2 * width(self._lengths[batches[-1][0]]) <= self._tokens:
            # torch.compile would compile all layers again for a batch of one row.
            batches[-1].insert(0, batches[-2].pop())
        return batches

    def _fill(self, ascending: list[int]) -> list[list[int]]:
        """Puts rows, from the longest to the shortest, into the fullest batch with enough room."""
        batches: list[list[int]] = []
        num_free: list[int] = []
        for index in reversed(ascending):
            length = self._lengths[index]
            fits = [place for place, free in enumerate(num_free) if free >= length]
            if fits:
                fullest = min(fits, key=num_free.__getitem__)
            else:
                fullest = len(batches)
                batches.append([])
                num_free.append(self._tokens)
            batches[fullest].insert(0, index)
            num_free[fullest] -= length
        return batches


class ShareOfBatches(Sampler[list[int]]):
    """The rows of each batch for one of several processes, or groups of them; may be none."""

    def __init__(self, batches: TokenBatches, number: int, num_shares: int) -> None:
        self._batches = batches
        self._number = number
        self._num_shares = num_shares

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def numbers(self) -> set[int]:
        """The numbers of all rows of this share."""
        return {number for batch in self for number in batch}

    def __iter__(self) -> Iterator[list[int]]:
        # A batch ascends by length: dealt in turn, each share gets some short and some long rows.
        return (batch[self._number :: self._num_shares] for batch in self._batches)


def collate(rows: list[Row]) -> dict[str, torch.Tensor]:
    """Right-padded `input_ids` (B, T) and `is_target` (B, T); for no rows, one without targets."""
    rows = rows or [NO_ROW]
    shape = len(rows), width(max(len(row.input_ids) for row in rows))
    input_ids = torch.zeros(shape, dtype=torch.long)
    is_target = torch.zeros(shape, dtype=torch.bool)
    for place, row in enumerate(rows):
        length = len(row.input_ids)
        input_ids[place, :length] = torch.from_numpy(row.input_ids)
        is_target[place, :length] = torch.from_numpy(row.is_target)
    return {"input_ids": input_ids, "is_target": is_target}


def to_next_tokens(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """`targets` (B, T) in place of `is_target`: at a token the id of the next one, or NO_TARGET."""
    input_ids, is_target = batch["input_ids"], batch["is_target"]
    targets = torch.full_like(input_ids, NO_TARGET)
    targets[:, :-1] = input_ids[:, 1:].where(is_target[:, 1:], NO_TARGET)
    rest = {name: value for name, value in batch.items() if name != "is_target"}
    return {**rest, "targets": targets}
