import os

import pytest

from agentworld.engine import programs
from agentworld.engine.programs import engine_arguments, engine_version, program
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


def test_vllm_is_started_to_tell_what_it_held_and_nothing_of_that_is_pinned():
    flag = "--enable-prompt-tokens-details"
    assert flag in program("vllm").command
    assert flag not in engine_arguments(EngineRecipe(kind="vllm"), 640)


def test_the_version_names_the_distribution_that_is_installed():
    assert engine_version("transformers-serve").startswith("transformers ")


def test_an_engine_that_somebody_else_runs_has_no_version_here():
    with pytest.raises(InputError, match="give its url"):
        engine_version("openai")


def test_an_engine_on_a_cpu_leaves_cores_to_another_one(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(programs, "_has_gpu", lambda: False)
    for cores, threads in ((1, "1"), (2, "1"), (16, "8")):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        started_with = program("transformers-serve").environment()
        assert started_with == {"OMP_NUM_THREADS": threads}


def test_a_number_of_threads_that_somebody_set_holds(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert program("transformers-serve").environment() == {}
