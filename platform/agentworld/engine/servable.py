"""Refuses a model that an engine cannot serve on this machine, before the engine starts."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agentworld.engine.adapter import has_adapter
from agentworld.engine.programs import has_gpu
from agentworld.errors import InputError
from agentworld.recipes.serve import EngineRecipe
from agentworld.records.file import read_regular

_BATCHED_LAYERS = {"full_attention", "sliding_attention"}
"""The layer types that transformers' continuous batching supports."""
_NUM_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


def check_servable(recipe: EngineRecipe, folder: Path) -> None:
    """Raises InputError for a model with which the recipe's engine could not answer."""
    file = folder / "config.json"
    config = json.loads(read_regular(file)) if file.is_file() else {}
    config = config.get("text_config") or config  # the part of a model that also reads images
    if recipe.kind == "transformers-serve":
        _check_transformers(config, folder)
    else:
        _check_vllm(config, folder, recipe.dtype)


def _check_transformers(config: dict[str, Any], folder: Path) -> None:
    others = set(config.get("layer_types") or ()) - _BATCHED_LAYERS
    if others:
        raise InputError(
            f"transformers-serve cannot serve layers of {', '.join(sorted(others))}, which"
            f" {folder} has; set the engine's kind to vllm"
        )


def _check_vllm(config: dict[str, Any], folder: Path, dtype: str) -> None:
    model_type = str(config.get("model_type"))
    # The classes of these models also read images, and vLLM imports them for text too.
    if model_type.startswith("qwen3_5") and find_spec("torchvision") is None:
        raise InputError(
            f"vllm needs torchvision for models of type {model_type}, as {folder}; install it"
        )
    if has_gpu():
        return
    if "linear_attention" in (config.get("layer_types") or ()) and dtype != "bfloat16":
        raise InputError(
            f"vllm on a CPU computes layers of linear_attention, which {folder} has, in bfloat16"
            f" alone, and the engine's dtype is {dtype}; set it to bfloat16"
        )
    # vLLM's kernels for an adapter beside experts need Triton, whatever layers the adapter has.
    if has_adapter(folder) and any(config.get(name) for name in _NUM_EXPERTS):
        raise InputError(
            f"vllm on a CPU serves no adapter beside a model with experts, as {folder}; set"
            " lora.merge to true and train again, or set the engine's kind to transformers-serve"
        )
