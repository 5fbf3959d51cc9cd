from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.sample import Sample
from make.training import TINY

if TYPE_CHECKING:
    from agentworld.train.model import LanguageModel

pytestmark = pytest.mark.compute

RECIPE = NextTokenRecipe(**TINY, stage="cpt", tokens_per_batch=512, epochs=2)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_deterministic_algorithms_are_used_only_during_a_training_that_enables_them(
    language_model: LanguageModel, samples: list[Sample], tmp_path: Path, *, is_enabled: bool
) -> None:
    import torch

    from agentworld.train.encode import encode, whole_episode
    from agentworld.train.trainer import train_rows

    def on_progress(_done: int, _total: int) -> None:
        flags.add(torch.are_deterministic_algorithms_enabled())

    flags: set[bool] = set()
    rows = list(encode(language_model.tokenizer, map(whole_episode, samples)))
    recipe = RECIPE.model_copy(update={"deterministic": is_enabled})
    train_rows(language_model, recipe, rows, tmp_path, on_progress)
    assert flags == {is_enabled}
    assert not torch.are_deterministic_algorithms_enabled()
