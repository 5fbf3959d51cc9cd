"""Estimates the speed of a training from the most similar measured or published training."""

import math
from typing import NamedTuple

from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.training_plan import Gpus, Speed
from agentworld.train.cards import CARDS
from agentworld.train.plan.architecture import Architecture


class KnownSpeed(NamedTuple):
    """The measured model FLOPs utilisation of a training."""

    mfu: float
    num_weights: float
    is_compiled: bool
    is_recomputed: bool
    """Whether activations were recomputed in the backward pass."""
    source: str


_GPU_JSON = "measured on one H200 on 2026-11-{} ({} in docs/figures/gpu.json)"
_TORCHTITAN = "cited: torchtitan trains Llama 3.1 8B on 8 H100 with 5,762 tokens/s each"
KNOWN_SPEEDS = (
    KnownSpeed(0.31, 0.596e9, True, False, _GPU_JSON.format(29, "cpt.whole_8k_packed")),
    KnownSpeed(0.263, 0.596e9, True, True, _GPU_JSON.format(29, "cpt.whole_8k_packed_recomputed")),
    KnownSpeed(
        0.175, 0.596e9, False, False, _GPU_JSON.format(29, "cpt.varied_packed_not_compiled")
    ),
    KnownSpeed(0.371, 8.19e9, True, True, _GPU_JSON.format(26, "full-8b")),
    KnownSpeed(0.33, 8.03e9, False, True, _TORCHTITAN),
)


_DOUBLINGS = 3
"""A model that is more than eight times larger or smaller is not similar; our choice."""


def speed_of(
    model: Architecture, recipe: NextTokenRecipe, length: int, gpus: Gpus, measured: float | None
) -> Speed | None:
    """The speed for rows of one length; `measured` is the caller's figure for one GPU, in tokens a
    second. Null for an architecture or a size without known trainings.
    """
    if measured is not None:
        return Speed(tokens_per_second=measured * gpus.count, source="your figure of one GPU")
    if model.flops is None:
        return None
    similar = _most_similar(model.num_weights, recipe)
    if _doublings(similar, model.num_weights) > _DOUBLINGS:
        return None
    rate = similar.mfu * CARDS[gpus.card].flops / model.flops.num(1, length)
    source = f"MFU {similar.mfu:g}, {similar.source}"
    if gpus.count > 1:
        source += f"; for each of {gpus.count} GPUs alike, which was not measured"
    return Speed(tokens_per_second=rate * gpus.count, source=source)


def _most_similar(num_weights: int, recipe: NextTokenRecipe) -> KnownSpeed:
    """The most similar one by compilation, then by size, then by recomputation."""

    def difference(speed: KnownSpeed) -> tuple[bool, int, bool]:
        return (
            speed.is_compiled != recipe.compile_layers,
            round(_doublings(speed, num_weights)),
            speed.is_recomputed != recipe.gradient_checkpointing,
        )

    return min(KNOWN_SPEEDS, key=difference)


def _doublings(speed: KnownSpeed, num_weights: int) -> float:
    """The binary logarithm of the ratio of the two models' sizes."""
    return abs(math.log2(speed.num_weights / num_weights))
