from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

if TYPE_CHECKING:
    import torch

pytestmark = pytest.mark.compute
lengths = st.lists(st.integers(1, 300), min_size=1, max_size=100)


def make_batches(*settings: object, **options: object) -> list[list[int]]:
    from agentworld.train.batches import TokenBatches

    return list(TokenBatches(*settings, **options))


def shares(batches: list[list[int]], num_ranks: int) -> list[tuple[list[int], ...]]:
    """Each process's part of each batch."""
    from agentworld.train.batches import ShareOfBatches

    return list(
        zip(*(ShareOfBatches(batches, rank, num_ranks) for rank in range(num_ranks)), strict=True)
    )


def collate_rows(sizes: list[int]) -> dict[str, torch.Tensor]:
    """Rows of these sizes, all of whose tokens are targets."""
    from agentworld.train.batches import collate
    from agentworld.train.encode import Row

    return collate([Row(np.arange(n, dtype=np.int32), np.ones(n, dtype=np.bool_)) for n in sizes])


@given(lengths, st.integers(1, 2_000))
def test_an_epoch_holds_every_row_once(lengths: list[int], tokens: int) -> None:
    indices = [index for batch in make_batches(lengths, tokens, 1, seed=0) for index in batch]
    assert sorted(indices) == list(range(len(lengths)))


@given(lengths, st.integers(1, 2_000))
def test_a_batch_of_several_rows_stays_within_the_token_limit(
    lengths: list[int], tokens: int
) -> None:
    for batch in make_batches(lengths, tokens, 1, seed=0):
        input_ids = collate_rows([lengths[index] for index in batch])["input_ids"]
        assert len(batch) == 1 or input_ids.numel() <= tokens


@given(lengths, st.integers(1, 2_000))
def test_a_row_is_batched_alone_only_if_no_other_row_fits(lengths: list[int], tokens: int) -> None:
    from agentworld.train.batches import width

    batches = sorted(make_batches(lengths, tokens, 1, seed=0), key=lambda batch: lengths[batch[0]])
    *_, second_last, last = [[], *batches]
    assert len(last) > 1 or len(second_last) < 3 or 2 * width(lengths[last[0]]) > tokens


@given(lengths, st.integers(1, 2_000), st.integers(1, 5))
def test_each_batch_is_split_evenly_between_processes_without_duplicates(
    lengths: list[int], tokens: int, num_ranks: int
) -> None:
    batches = make_batches(lengths, tokens, 1, seed=0)
    shares_by_batch = shares(batches, num_ranks)
    assert len(shares_by_batch) == len(batches)
    for batch, parts in zip(batches, shares_by_batch, strict=True):
        assert sorted(index for part in parts for index in part) == sorted(batch)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_share_of_no_rows_is_a_batch_without_targets() -> None:
    batch = collate_rows([])
    assert batch["input_ids"].shape == batch["is_target"].shape == (1, 8)
    assert not batch["is_target"].any()


def test_the_next_epoch_has_another_order() -> None:
    batches = make_batches([10] * 200, 100, 2, seed=0)
    assert batches[: len(batches) // 2] != batches[len(batches) // 2 :]


def test_half_an_epoch_is_half_the_batches() -> None:
    batches = make_batches([8] * 200, 80, 1, seed=0)
    assert make_batches([8] * 200, 80, 0.5, seed=0) == batches[:10]


def test_padding_is_never_a_target() -> None:
    batch = collate_rows([3, 5])
    assert batch["is_target"].sum(dim=1).tolist() == [3, 5]
    assert batch["input_ids"].shape == batch["is_target"].shape


@given(lengths, st.integers(1, 2_000))
def test_packed_batches_hold_every_row_once_and_stay_within_the_token_limit(
    lengths: list[int], tokens: int
) -> None:
    batches = make_batches(lengths, tokens, 1, seed=0, packed=True)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or sum(lengths[index] for index in batch) <= tokens


@given(lengths, st.integers(1, 2_000))
def test_no_two_packed_batches_would_fit_into_one(lengths: list[int], tokens: int) -> None:
    sums = sorted(
        sum(lengths[index] for index in batch)
        for batch in make_batches(lengths, tokens, 1, seed=0, packed=True)
    )
    assert len(sums) < 2 or sums[0] + sums[1] > tokens


def test_packed_batches_of_long_and_short_rows_are_nearly_full() -> None:
    random = np.random.default_rng(0)
    lengths = [int(n) for n in random.lognormal(np.log(200), 0.84, 2_000).clip(8, 4_096)]
    batches = make_batches(lengths, 4_096, 1, seed=0, packed=True)
    assert len(batches) * 4_096 <= 1.03 * sum(lengths)
