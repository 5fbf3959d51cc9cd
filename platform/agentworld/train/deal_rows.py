"""Distributes rows to several processes: rank 0 has all of them, and sends each process its own.

Tokens are sent as tensors, in parts; nothing is pickled, and only rank 0 has all rows.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np
import torch
import torch.distributed as dist

from agentworld.train.distributed import num_ranks, patient_group, rank
from agentworld.train.encode import Row

_TOKENS_AT_ONCE = 1 << 22


def share_lengths(rows: Sequence[Row]) -> list[int]:
    """The lengths of rank 0's rows, for all processes."""
    lengths = [len(row.input_ids) for row in rows]
    if num_ranks() == 1:
        return lengths
    with patient_group() as group:  # rank 0 may encode for hours
        num_rows = torch.tensor(len(lengths))
        dist.broadcast(num_rows, 0, group)
        buffer = (
            torch.tensor(lengths) if rank() == 0 else torch.empty(int(num_rows), dtype=torch.long)
        )
        dist.broadcast(buffer, 0, group)
    shared: list[int] = buffer.tolist()
    return shared


def deal_rows(
    rows: Sequence[Row], lengths: Sequence[int], share_of: Callable[[int], Collection[int]]
) -> Mapping[int, Row]:
    """This process's rows by their numbers; `share_of` has the numbers of a process by its rank."""
    share = share_of(rank())
    if num_ranks() == 1:
        return {number: rows[number] for number in share}
    with patient_group() as group:
        if rank() > 0:
            return dict(_receive(lengths, share, group))
        for other in range(1, num_ranks()):
            _send(rows, _pieces(lengths, share_of(other)), other, group)
    return {number: rows[number] for number in share}


def _send(
    rows: Sequence[Row], pieces: Iterator[list[int]], other: int, group: dist.ProcessGroup
) -> None:
    for numbers in pieces:
        tokens = np.concatenate([rows[number].input_ids for number in numbers])
        is_target = np.concatenate([rows[number].is_target for number in numbers])
        dist.send(torch.from_numpy(tokens), other, group)
        dist.send(torch.from_numpy(is_target.view(np.uint8)), other, group)


def _receive(
    lengths: Sequence[int], share: Collection[int], group: dist.ProcessGroup
) -> Iterator[tuple[int, Row]]:
    for numbers in _pieces(lengths, share):
        ends = np.cumsum([lengths[number] for number in numbers])
        tokens = torch.empty(int(ends[-1]), dtype=torch.int32)
        is_target = torch.empty(int(ends[-1]), dtype=torch.uint8)
        dist.recv(tokens, 0, group)
        dist.recv(is_target, 0, group)
        parts = zip(
            np.split(tokens.numpy(), ends[:-1]),
            np.split(is_target.numpy().view(np.bool_), ends[:-1]),
            strict=True,
        )
        yield from zip(numbers, (Row(*part) for part in parts), strict=True)


def _pieces(lengths: Sequence[int], numbers: Collection[int]) -> Iterator[list[int]]:
    """The numbers of the rows that are sent together."""
    piece: list[int] = []
    num_tokens = 0
    for number in sorted(numbers):
        if piece and num_tokens + lengths[number] > _TOKENS_AT_ONCE:
            yield piece
            piece, num_tokens = [], 0
        piece.append(number)
        num_tokens += lengths[number]
    if piece:
        yield piece
