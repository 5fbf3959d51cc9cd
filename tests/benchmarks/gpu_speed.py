"""The speed and the memory of a training on a GPU, for `tools/gpu_check.sh`."""

import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from agentworld.recipes.train import NextTokenRecipe
from agentworld.train.batches import TokenBatches
from agentworld.train.encode import Row
from agentworld.train.model import LanguageModel
from agentworld.train.trainer import train_rows
from benchmarks.qwen3_sizes import RECIPE

_BF16_FLOPS = 989e12
"""Of an H100 or H200 (SXM), dense."""
WARM_UP_STEPS = 4
_TIMED_STEPS = 8


class EnoughSteps(Exception):
    """Ends a training that was only to be timed."""


def measure_speed(model: PreTrainedModel, rows: list[Row], **settings: Any) -> dict[str, Any]:
    """Tokens a second after the first steps, model FLOPs utilisation, and the most memory."""
    recipe = RECIPE.model_copy(update=settings)
    seconds: list[float] = []

    def on_step(done: int, _total: int) -> None:
        torch.cuda.synchronize()
        seconds.append(time.perf_counter())
        if done == WARM_UP_STEPS + _TIMED_STEPS:
            raise EnoughSteps

    torch.cuda.reset_peak_memory_stats()
    try:
        with tempfile.TemporaryDirectory() as folder:
            language_model = LanguageModel(model, None)
            if recipe.lora:
                language_model = language_model.with_adapter(recipe.lora, recipe.seed)
            train_rows(language_model, recipe, rows, Path(folder), on_step)
    except EnoughSteps:
        pass
    except torch.OutOfMemoryError:
        return {"settings": recipe.model_dump(include=set(settings)), "out_of_memory": True}
    finally:
        model.zero_grad(set_to_none=True)
        model.gradient_checkpointing_disable()  # the trainer leaves it on for the next one
    settings = recipe.model_dump(include=set(settings))
    return {"settings": settings, **_speed_figures(model, recipe, rows, seconds)}


def _speed_figures(
    model: PreTrainedModel, recipe: NextTokenRecipe, rows: list[Row], ends: list[float]
) -> dict[str, Any]:
    lengths = np.array([len(row.input_ids) for row in rows])
    packed = recipe.packing is not False
    batches = TokenBatches(
        lengths.tolist(), recipe.tokens_per_batch, recipe.epochs, recipe.seed, packed=packed
    )
    timed = [lengths[batch] for batch in list(batches)[WARM_UP_STEPS : len(ends)]]
    tokens = sum(int(batch.sum()) for batch in timed)
    mean_length = sum(int((batch**2).sum()) for batch in timed) / tokens
    per_second = tokens / (ends[-1] - ends[WARM_UP_STEPS - 1])
    config, num = model.config, sum(weight.numel() for weight in model.parameters())
    attention = (
        6 * config.num_hidden_layers * config.num_attention_heads * config.head_dim * mean_length
    )
    return {
        "tokens_per_second": round(per_second),
        "mean_length_seen": round(mean_length),
        "mfu": round(per_second * (6 * num + attention) / _BF16_FLOPS, 3),
        "step_seconds": [round(end - start, 3) for start, end in pairwise(ends)],
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 1),
    }
