"""The recipes of pretrained models, on two layers with random weights of the same family."""

import json
from pathlib import Path

import pytest
import yaml

from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.runner.folders import checkpoint_of, model_of
from agentworld.steps.run import run_by_name
from make import training

pytestmark = pytest.mark.compute


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    import make.model

    return make.model.tiny_qwen3(tmp_path_factory.mktemp("qwen3") / "model")


@pytest.mark.parametrize("name", ["qwen3-0.6b", "qwen3-8b"])
def test_cpt_and_sft_of_the_recipe_train_from_the_base(name, base, tmp_path):
    inputs = training.training(tmp_path / "store")
    settings = yaml.safe_load(recipe_path(name).read_text())
    settings["model"]["base"] = str(base)
    Path(inputs.recipe).write_text(yaml.safe_dump(settings))
    cpt = Path(run_by_name("cpt", *inputs))
    sft = Path(run_by_name("sft", *inputs, str(cpt)))
    first, second = checkpoint_of(cpt), checkpoint_of(sft)
    assert first.parents == (ArtifactManifest.of(base).digest,)
    assert second.parents == (first.artifact,)
    assert second.recipe["learning_rate"] == settings["sft"]["learning_rate"]
    # Qwen's base model ends with another token than its chat template.
    generation = json.loads((model_of(sft) / "generation_config.json").read_text())
    tokens = json.loads((model_of(sft) / "tokenizer.json").read_text())["added_tokens"]
    token_ids = {token["content"]: token["id"] for token in tokens}
    assert generation["eos_token_id"] == [token_ids["<|im_end|>"], token_ids["<|endoftext|>"]]


@pytest.mark.parametrize("name", ["qwen3-0.6b", "qwen3-0.6b-shell", "qwen3-8b"])
def test_a_hub_base_is_pinned_to_a_commit_and_trained_with_the_defaults(name):
    recipe = load_recipe(recipe_path(name))
    assert recipe.model.base is not None
    assert len(recipe.model.base.partition("@")[2]) == 40
    for stage in (recipe.cpt, recipe.sft):
        assert stage.muon_learning_rate is None
        assert stage.learning_rate <= 2e-5
        assert stage.gradient_checkpointing


NEW_MODEL_SETTINGS = {
    "learning_rate": 3e-3,
    "muon_learning_rate": 0.02,
    "adam_betas": (0.9, 0.95),
    "weight_decay": 0.0,
    "max_gradient_norm": 1.0,
    "sequence_tokens": None,
    "packing": False,
    "gradient_checkpointing": False,
    "warmup_share": 0.02,
}


@pytest.mark.parametrize("name", ["smoke", "demo", "long", "mcp", "terminal", "live"])
def test_the_recipes_of_tiny_models_set_their_tuned_values(name):
    recipe = load_recipe(recipe_path(name))
    for stage in (recipe.cpt, recipe.sft):
        assert stage.model_dump(include=set(NEW_MODEL_SETTINGS)) == NEW_MODEL_SETTINGS
    assert recipe.rl.learning_rate == 1e-4
    needs_less_memory = recipe.model.context_tokens > 1024
    assert recipe.rl.gradient_checkpointing == needs_less_memory
