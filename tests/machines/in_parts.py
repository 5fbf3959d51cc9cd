"""Work of several processes on sharded models, and on rows that rank 0 has."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoModelForCausalLM

from agentworld.recipes.train import LoraRecipe
from agentworld.train import deal_rows, sharding
from agentworld.train.distributed import process_group, rank
from agentworld.train.encode import Row
from agentworld.train.lora import add_adapter, merge_layers
from agentworld.train.zero import gathered, num_elements

SHARD_BYTES = 60_000
SHARES = ({0, 2, 3}, {1, 2}, {4})


def load_whole(folder: Path) -> Any:
    """Loads a model in float32, in one process."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype="float32")


def merge(model: Any) -> Any:
    """Merges a random adapter into the model's weights."""
    adapter = add_adapter(model, LoraRecipe(rank=4), seed=0)
    weights = [weight for name, weight in adapter.named_parameters() if "lora_B" in name]
    with gathered(weights, changed=True):
        for number, weight in enumerate(weights):
            weight.data.fill_(number + 1)
    return merge_layers(adapter)


@process_group()
def save_in_parts(bases: dict[str, Path], incomplete: Path, out: Path) -> None:
    """Loads and saves each model; the one that gets an adapter is called `merged`."""
    with pytest.raises(ValueError, match=r"the weights model\.norm\.weight are missing"):
        sharding.load_in_parts(incomplete, "eager")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharding, "SHARD_BYTES", SHARD_BYTES)
        for name, base in bases.items():
            model = sharding.load_in_parts(base, "eager")
            for weight in model.parameters():
                assert weight.numel() == 0
                assert weight.ds_tensor.numel() == -(-num_elements(weight) // 2)
            if name == "merged":
                model = merge(model)
            sharding.save_model(model, out / name)


def row(number: int) -> Row:
    """A row with a length of its own."""
    tokens = np.arange(number + 3, dtype=np.int32) + 100 * number
    return Row(tokens, tokens % 2 == 0)


@process_group()
def deal(out: Path) -> None:
    """Each process writes the numbers of the rows that it receives, if they equal those of rank
    0.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deal_rows, "_TOKENS_AT_ONCE", 5)
        rows = [row(number) for number in range(5)] if rank() == 0 else []
        lengths = deal_rows.share_lengths(rows)
        for number, dealt_row in deal_rows.deal_rows(rows, lengths, SHARES.__getitem__).items():
            assert dealt_row.is_target.dtype == np.bool_
            np.testing.assert_array_equal(dealt_row, row(number))
            with (out / f"rows-{rank()}").open("a") as file:
                file.write(f"{number} ")
