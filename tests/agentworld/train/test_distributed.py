"""Two processes of this machine train one model, on their CPUs."""

import json
from pathlib import Path

import pytest

from machines.forked import run_with_ranks

pytestmark = pytest.mark.compute


@pytest.mark.parametrize("batches", ["padded", "packed-accumulated"])
def test_several_processes_train_the_same_weights_as_one(batches: str, tmp_path: Path) -> None:
    import torch

    from machines.train_in_float32 import train, train_in_each

    single, parallel = tmp_path / "alone" / batches, tmp_path / "together" / batches
    single.mkdir(parents=True)
    parallel.mkdir(parents=True)
    train(single)
    run_with_ranks(tmp_path, train_in_each, [parallel])
    losses, actual = (json.loads((out / "losses.json").read_text()) for out in (single, parallel))
    assert len(losses) == (24 if batches == "padded" else 12)
    assert actual == pytest.approx(losses, rel=1e-4)
    weights, actual = (torch.load(out / "weights.pt") for out in (single, parallel))
    for name, weight in weights.items():
        torch.testing.assert_close(actual[name], weight, rtol=0, atol=1e-3, msg=name)


def test_a_single_process_is_rank_zero_and_runs_its_work() -> None:
    from agentworld.train.distributed import num_ranks, on_rank_zero, process_group, rank

    with process_group():
        assert (rank(), num_ranks(), on_rank_zero(lambda: "made")) == (0, 1, "made")
