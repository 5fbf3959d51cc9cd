"""A small setup: a tokenizer that was trained on a few turns, and a model of one layer.

Modules that load torch are imported where they are used: only one worker of the fast tests does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentworld.domains.shell.pretokenizer import pretokenizer_pattern
from agentworld.recipes.train import ModelRecipe
from agentworld.records.sample import Sample
from make import training

if TYPE_CHECKING:
    from agentworld.train.model import LanguageModel


@pytest.fixture
def samples() -> list[Sample]:
    return training.samples()


@pytest.fixture
def language_model(samples: list[Sample]) -> LanguageModel:
    from agentworld.train.model import new_model
    from agentworld.train.tokenizer import train_tokenizer

    texts = [
        text
        for sample in samples
        for turn in sample.turns
        for text in turn.model_dump(include={"action", "observation"}).values()
    ]
    recipe = ModelRecipe(hidden_size=32, intermediate_size=64, num_layers=1, head_size=8)
    return new_model(recipe, train_tokenizer(texts, pretokenizer_pattern(), 400))
