"""Trains a small model twice and writes its weights and losses: `train_in_float32.py FOLDER`, by
one process or by several that torchrun starts.

Without bfloat16, in which the sums of two halves are not those of the whole.
"""

import json
import random
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.progress import no_tick
from agentworld.train.encode import Row
from agentworld.train.model import LanguageModel
from agentworld.train.together import from_first, joined
from agentworld.train.trainer import NextTokenTrainer

_VOCABULARY = 50
# Of a batch's three rows the second has no target, and long rows are alone in theirs.
_LENGTHS = (20, 20, 20, 60, 60, 20, 20, 20)
RECIPE = NextTokenRecipe(
    stage="cpt", tokens_per_batch=72, epochs=3, learning_rate=1e-2, muon_learning_rate=None
)


def rows() -> list[Row]:
    """Random tokens."""
    rng = random.Random(0)
    return [_row(rng, length, has_target=place % 3 != 1) for place, length in enumerate(_LENGTHS)]


def _row(rng: random.Random, length: int, *, has_target: bool) -> Row:
    ids = [rng.randrange(_VOCABULARY) for _ in range(length)]
    targets = [has_target and rng.random() < 0.4 for _ in range(length)]
    return Row(np.array(ids, dtype=np.int32), np.array(targets, dtype=np.bool_))


def _model() -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 16}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    return Qwen3ForCausalLM(Qwen3Config(vocab_size=_VOCABULARY, **sizes, **heads))


@joined()
def train(out: Path) -> None:
    """Twice in one group of processes, as a new model learns to copy before it sees an episode."""
    model, losses = _model(), []
    for name in ("first", "second"):
        trainer = NextTokenTrainer(LanguageModel(model, None), RECIPE, rows(), out / name, no_tick)
        trainer.args.logging_steps = 1
        trainer.accelerator.native_amp = False
        trainer.train()
        losses += [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    from_first(lambda: (out / "losses.json").write_text(json.dumps(losses)))
    from_first(lambda: torch.save(model.state_dict(), out / "weights.pt"))


if __name__ == "__main__":
    train(Path(sys.argv[1]))
