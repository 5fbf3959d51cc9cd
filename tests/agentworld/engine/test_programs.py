import os

import pytest

from agentworld.engine import programs
from agentworld.engine.programs import (
    INHERITED,
    engine_arguments,
    engine_environment,
    engine_version,
    program,
)
from agentworld.errors import InputError
from agentworld.recipes.serve import EngineRecipe


def test_the_cache_of_transformers_serve_is_capped():
    recipe = EngineRecipe(kind="transformers-serve", cache_blocks=7, batch_tokens=9)
    arguments = engine_arguments(recipe, 1024)
    assert arguments[arguments.index("--cb-num-blocks") + 1] == "7"
    assert arguments[arguments.index("--cb-max-batch-tokens") + 1] == "9"


def test_vllm_is_started_with_the_context_length():
    arguments = engine_arguments(EngineRecipe(kind="vllm"), 640)
    assert arguments[arguments.index("--max-model-len") + 1] == "640"


def test_vllms_prompt_tokens_details_flag_is_set_and_not_pinned():
    flag = "--enable-prompt-tokens-details"
    assert flag in program("vllm").command
    assert flag not in engine_arguments(EngineRecipe(kind="vllm"), 640)


def test_the_version_contains_the_installed_distributions_name():
    assert engine_version("transformers-serve").startswith("transformers ")


def test_an_external_endpoint_has_no_local_version():
    with pytest.raises(InputError, match="give its url"):
        engine_version("openai")


def test_an_engine_on_a_cpu_uses_half_of_the_cores(monkeypatch):
    monkeypatch.setattr(programs, "has_gpu", lambda: False)
    for cores, threads in ((1, "1"), (2, "1"), (16, "8")):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        assert engine_environment(EngineRecipe())["OMP_NUM_THREADS"] == threads


def test_a_recipes_environment_overrides_the_defaults(monkeypatch):
    monkeypatch.setattr(programs, "has_gpu", lambda: False)
    recipe = EngineRecipe(environment={"OMP_NUM_THREADS": "3", "VLLM_BATCH_INVARIANT": "1"})
    environment = engine_environment(recipe)
    assert recipe.environment.items() <= environment.items()
    assert environment["HF_HUB_OFFLINE"] == "1"


FAMILIES = "VLLM TORCH CUDA HF TRANSFORMERS OMP MKL KMP ATEN ONEDNN LD PYTHON".split()


@pytest.mark.parametrize("kind", ["transformers-serve", "vllm"])
def test_an_engine_inherits_no_library_variables_except_cuda_visible_devices(kind, monkeypatch):
    environment = engine_environment(EngineRecipe(kind=kind))
    for family in FAMILIES:
        monkeypatch.setenv(f"{family}_ANYTHING", "1")
    for name in ("OMP_NUM_THREADS", "VLLM_SERVER_DEV_MODE", "LD_PRELOAD", "PYTHONPATH"):
        monkeypatch.setenv(name, "1")
    assert engine_environment(EngineRecipe(kind=kind)) == environment
    inherited_names = {name for name in INHERITED if name.partition("_")[0] in FAMILIES}
    assert inherited_names == {"CUDA_VISIBLE_DEVICES"}


def test_transformers_gets_the_context_length_outside_the_pinned_arguments():
    assert program("transformers-serve").limits(640) == ("--context-tokens", "640")
    assert "--context-tokens" not in engine_arguments(EngineRecipe(), 640)
    assert program("vllm").limits(640) == ()
