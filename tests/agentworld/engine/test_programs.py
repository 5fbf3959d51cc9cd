import pytest

from agentworld.engine.programs import engine_arguments, engine_version
from agentworld.errors import InputError
from agentworld.recipes.serve import EngineRecipe


def test_the_cache_of_transformers_serve_is_capped():
    recipe = EngineRecipe(kind="transformers-serve", cache_blocks=7, batch_tokens=9)
    arguments = engine_arguments(recipe, 1024)
    assert arguments[arguments.index("--cb-num-blocks") + 1] == "7"
    assert arguments[arguments.index("--cb-max-batch-tokens") + 1] == "9"


def test_vllm_is_started_for_the_contexts_length():
    arguments = engine_arguments(EngineRecipe(kind="vllm"), 640)
    assert arguments[arguments.index("--max-model-len") + 1] == "640"


def test_the_version_names_the_distribution_that_is_installed():
    assert engine_version("transformers-serve").startswith("transformers ")


def test_an_engine_that_somebody_else_runs_has_no_version_here():
    with pytest.raises(InputError, match="give its url"):
        engine_version("openai")
