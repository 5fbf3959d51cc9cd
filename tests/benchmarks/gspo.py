"""The speed and the memory of GSPO in the stage `rl`, for a model with random weights."""

import tempfile
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from trl import GRPOTrainer

from agentworld.recipes.train import WorldRlRecipe
from agentworld.train.group_rl import group_config
from agentworld.train.rl_metrics import RlMetrics
from make.tiny_qwen3 import byte_level


def measure_gspo(
    model: PreTrainedModel, recipe: WorldRlRecipe, prompt_tokens: int
) -> dict[str, Any]:
    """Trains for the recipe's steps on responses that transformers samples, in float32.

    The figures leave out the first step, which warms up.
    """
    metrics: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            processing_class=_bytes(),
            reward_funcs=_even_tokens,
            args=group_config(
                recipe,
                Path(folder),
                max_completion_tokens=recipe.max_tokens,
                gradient_checkpointing=recipe.gradient_checkpointing,
            ),
            train_dataset=Dataset.from_list(
                [{"prompt": str(digit) * prompt_tokens} for digit in range(10)]
            ),
            callbacks=[RlMetrics(lambda _step, figures: metrics.append(dict(figures)))],
        )
        trainer.train()
    _, *step_figures = metrics
    names = ("answer_tokens", "reward_std", "gradient_norm")
    return {
        "settings": recipe.model_dump(include={"num_steps", "prompts_per_step", "group_size"}),
        "prompt_tokens": prompt_tokens,
        "tokens_per_second": [round(figures["tokens_per_second"]) for figures in step_figures],
        **{name: step_figures[-1][name] for name in names},
        "peak_gib": round(step_figures[-1]["memory_gib"], 1),
    }


def _bytes() -> PreTrainedTokenizerFast:
    """A tokenizer with one token for each digit."""
    return PreTrainedTokenizerFast(
        tokenizer_object=byte_level([], 300), pad_token="<|endoftext|>", eos_token="<|im_end|>"
    )


def _even_tokens(completion_ids: list[list[int]], **_: object) -> list[float]:
    """A reward that differs between a random model's responses."""
    return [float(sum(token % 2 == 0 for token in tokens)) for tokens in completion_ids]
