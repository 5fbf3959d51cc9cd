"""The memory of each process at ZeRO stage 3: while it loads a model, trains it, and saves it.

`python -m benchmarks.rank_memory FOLDER` is one of the processes, which torchrun starts.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.progress import ignore_progress
from agentworld.train import sharding, zero
from agentworld.train.distributed import num_ranks, on_rank_zero, process_group, rank
from agentworld.train.encode import Row
from agentworld.train.model import ATTENTION, LanguageModel
from agentworld.train.trainer import train_rows
from machines.launched import run_together
from make.model import tiny_model

_SHARD_BYTES = 20_000_000
_CONFIG = {
    "vocab_size": 8_192,
    "hidden_size": 512,
    "intermediate_size": 1_536,
    "num_hidden_layers": 16,
    "head_dim": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "tie_word_embeddings": True,
}
_RECIPE = NextTokenRecipe(
    stage="cpt", tokens_per_batch=64, packing=False, zero_stage=3, checkpoint_every=2
)
_Value = TypeVar("_Value")


def rank_bytes_per_parameter(folder: Path, num: int = 2) -> dict[str, float]:
    """The most of any of the processes in each phase, and the most that it may be."""
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(Qwen3Config(**_CONFIG))
    model.save_pretrained(folder / "base")
    num_parameters = model.num_parameters()
    del model
    run_together("-m", "benchmarks.rank_memory", folder, num=num)
    ranks = [json.loads((folder / f"rank-{number}.json").read_text()) for number in range(num)]
    figures = {phase: max(each[phase] for each in ranks) / num_parameters for phase in ranks[0]}
    return {**figures, "limit": 24 / num + _SHARD_BYTES / num_parameters}


@process_group()
def main(folder: Path) -> None:
    """Loads, trains some steps with a checkpoint, and saves."""
    sharding.SHARD_BYTES = zero.SHARD_BYTES = _SHARD_BYTES
    _train(_tiny(folder), folder / "tiny")  # what is loaded once, and is no model
    before = _resident("VmRSS")
    peaks: dict[str, int] = {}

    def watch(phase: str, work: Callable[[], _Value]) -> _Value:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        value = work()
        peaks[phase] = _resident("VmHWM") - before
        return value

    model = watch("load", lambda: sharding.load_in_parts(folder / "base", ATTENTION))
    language_model = LanguageModel(model, PreTrainedTokenizerFast.from_pretrained(folder / "words"))
    watch("training", lambda: _train(language_model, folder / "out"))
    watch("save", lambda: language_model.save(folder / "saved"))
    (folder / f"rank-{rank()}.json").write_text(json.dumps(peaks))


def _tiny(folder: Path) -> LanguageModel:
    on_rank_zero(lambda: str(tiny_model(folder / "words")))
    model = sharding.load_in_parts(folder / "words", ATTENTION)
    return LanguageModel(model, PreTrainedTokenizerFast.from_pretrained(folder / "words"))


def _train(language_model: LanguageModel, out: Path) -> None:
    tokens = np.arange(32, dtype=np.int32)
    rows = [Row(tokens, np.ones(32, dtype=np.bool_))] * (3 * num_ranks())
    train_rows(language_model, _RECIPE, rows, out, ignore_progress)


def _resident(field: str) -> int:
    """Bytes, of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise KeyError(field)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
