"""Real engines: they take seconds to start, and vLLM is there only where it was installed."""

import asyncio
import json
import os
import shutil
import signal

import pytest

import make
from agentworld.engine.attested import attested
from agentworld.engine.base import Completion
from agentworld.engine.openai import OpenAIEngine
from agentworld.engine.server import serve
from agentworld.errors import EngineError, InputError
from agentworld.recipes.serve import EngineRecipe
from agentworld.records.simulator import Sampling

MAX_TOKENS, CONTEXT_TOKENS = 40, 256
GREEDY = Sampling(max_tokens=MAX_TOKENS)
DRAWN = Sampling(max_tokens=MAX_TOKENS, temperature=1.0)
PROMPTS = [f"echo {number} > a{number * 7}" for number in range(16)]
SYSTEM = "rimo.txt: kolu tane\n" * 12  # long enough for pages that prompts share
CUT_OFF, EMPTY = "cut-off", "unparsable"


def asked(prompt):
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]


def serving(folder, logs, kind="transformers-serve", sampling=GREEDY):
    recipe = EngineRecipe(kind=kind, cache_blocks=128, batch_tokens=256)
    log = logs / "engine.log"
    return serve(folder, recipe, sampling=sampling, context_tokens=CONTEXT_TOKENS, log=log)


def pinned(served, context_tokens=CONTEXT_TOKENS):
    """The engine behind the check that it is the pinned one."""
    engine = {"kind": served.kind, "version": served.version, "lock": make.digest("lock")}
    manifest = make.manifest(engine=engine, context_tokens=context_tokens)
    server = OpenAIEngine(served.url, served.model, kind=served.kind, logprobs=True)
    return attested(server, manifest, served.model)


@pytest.fixture(scope="module")
def vllm(tiny_model, tmp_path_factory):
    with serving(tiny_model, tmp_path_factory.mktemp("vllm"), "vllm") as served:
        yield served


@pytest.fixture(scope="module")
def transformers_serve(tiny_model, tmp_path_factory):
    with serving(tiny_model, tmp_path_factory.mktemp("transformers")) as served:
        yield served


def complete_all(engine, prompts, sampling=GREEDY):
    """The engine's completion of each, all asked at once, or its error."""

    async def complete(prompt):
        try:
            return await engine.complete(asked(prompt), sampling)
        except EngineError as error:
            return error

    async def work():
        completions = await asyncio.gather(*map(complete, prompts))
        await engine.close()
        return completions

    return asyncio.run(work())


def say_all(served, prompts, sampling=GREEDY):
    """What the engine says to each, or the kind of its error."""
    return texts(complete_all(served.connect(), prompts, sampling))


def texts(completions):
    return [each.kind if isinstance(each, EngineError) else each.text for each in completions]


def generate_all(folder, prompts):
    """What transformers' own generate says to each, or that it did not end."""
    from transformers import AutoTokenizer, Qwen3ForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = Qwen3ForCausalLM.from_pretrained(folder)
    return [_generate(tokenizer, model, prompt) for prompt in prompts]


def _generate(tokenizer, model, prompt):
    read = tokenizer.apply_chat_template(
        asked(prompt), add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    written = model.generate(**read, do_sample=False, max_new_tokens=MAX_TOKENS)
    ids = written[0, read["input_ids"].shape[1] :]
    if ids[-1] != tokenizer.eos_token_id:
        return CUT_OFF
    return tokenizer.decode(ids, skip_special_tokens=True) or EMPTY


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["transformers_serve", "vllm"])
def test_a_greedy_engine_says_what_generate_says(kind, tiny_model, request):
    served = request.getfixturevalue(kind)
    expected = generate_all(tiny_model, PROMPTS)
    assert len(set(expected) - {CUT_OFF, EMPTY}) > 4
    assert say_all(served, PROMPTS) == expected
    assert say_all(served, PROMPTS[::-1]) == expected[::-1]


@pytest.mark.slow
def test_vllm_draws_each_answer_as_it_was_asked(vllm):
    narrow = DRAWN.model_copy(update={"top_k": 1})
    assert len(set(say_all(vllm, [PROMPTS[0]] * 12, DRAWN))) > 3
    assert len(set(say_all(vllm, [PROMPTS[0]] * 12, narrow))) == 1


@pytest.mark.slow
def test_vllm_tells_how_sure_it_is_of_each_answer(vllm):
    completions = complete_all(pinned(vllm), PROMPTS)
    sure = [each.mean_logprob for each in completions if isinstance(each, Completion)]
    assert len(set(sure)) > 4
    assert all(-20 < each <= 0 for each in sure)


@pytest.mark.slow
def test_vllm_tells_how_much_of_each_prompt_it_still_held(vllm):
    prompts = [SYSTEM + prompt for prompt in PROMPTS]  # on a CPU its pages have 128 tokens
    complete_all(vllm.connect(), prompts)
    again = complete_all(vllm.connect(), prompts)
    told = [each for each in again if isinstance(each, Completion)]
    assert told
    assert all(0 < each.num_cached_tokens < each.num_prompt_tokens for each in told)


@pytest.mark.slow
def test_vllm_tells_that_it_is_not_the_pinned_one(vllm):
    for another in (vllm._replace(version="vllm 0.11.0"), vllm._replace(model="another")):
        assert texts(complete_all(pinned(another), PROMPTS[:1])) == ["engine"]
    (refused,) = complete_all(pinned(vllm, context_tokens=512), PROMPTS[:1])
    assert "takes 256 tokens where 512 is asked for" in str(refused)


@pytest.mark.slow
def test_transformers_serve_draws_every_answer_as_it_was_started_for(tiny_model, tmp_path):
    with serving(tiny_model, tmp_path, sampling=DRAWN) as served:
        assert len(set(say_all(served, [PROMPTS[0]] * 12, DRAWN))) > 3
        with pytest.raises(InputError, match="start another one"):
            say_all(served, PROMPTS[:1], GREEDY)


@pytest.mark.slow
def test_transformers_serve_keeps_to_the_top_k_that_it_was_started_for(tiny_model, tmp_path):
    narrow = DRAWN.model_copy(update={"top_k": 1})
    with serving(tiny_model, tmp_path, sampling=narrow) as served:
        assert say_all(served, PROMPTS, narrow) == generate_all(tiny_model, PROMPTS)


@pytest.mark.slow
def test_an_engine_that_dies_is_a_typed_error_and_is_named(tiny_model, tmp_path):
    def work():
        with serving(tiny_model, tmp_path) as served:
            os.kill(served.server.process.pid, signal.SIGKILL)
            served.server.process.wait()
            assert say_all(served, PROMPTS[:1]) == ["engine"]

    with pytest.raises(EngineError, match="transformers-serve ended with status -9; the end of"):
        work()


@pytest.mark.slow
def test_a_folder_without_a_model_is_an_error_with_the_log(tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()

    def work():
        with serving(folder, tmp_path):
            raise AssertionError("an empty folder was served")

    with pytest.raises(EngineError, match=str(tmp_path / "engine.log")):
        work()


def lora(folder):
    """A copy of a model, merged with an adapter of rank 4, and another one with it beside."""
    import torch
    from safetensors.torch import load_file, save_file

    merged, beside = folder / "merged", folder / "beside"
    weights = load_file(merged / "model.safetensors")
    torch.manual_seed(1)
    tensors = {}
    for layer in range(2):
        name = f"model.layers.{layer}.self_attn.q_proj"
        weight = weights[f"{name}.weight"]
        down, up = torch.randn(4, weight.shape[1]), torch.randn(weight.shape[0], 4)
        tensors[f"base_model.model.{name}.lora_A.weight"] = down
        tensors[f"base_model.model.{name}.lora_B.weight"] = up
        weights[f"{name}.weight"] = weight + up @ down
    save_file(weights, merged / "model.safetensors", metadata={"format": "pt"})
    (beside / "adapter").mkdir()
    save_file(tensors, beside / "adapter" / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 4, "lora_alpha": 4, "target_modules": ["q_proj"]}
    config |= {"bias": "none", "task_type": "CAUSAL_LM"}
    (beside / "adapter" / "adapter_config.json").write_text(json.dumps(config))


@pytest.mark.slow
def test_vllm_answers_with_an_adapter_as_with_the_merged_weights(tiny_model, tmp_path):
    for name in ("merged", "beside"):
        shutil.copytree(tiny_model, tmp_path / name)
    lora(tmp_path)
    with serving(tmp_path / "beside", tmp_path, "vllm") as served:
        said = texts(complete_all(pinned(served), PROMPTS))
    assert said == generate_all(tmp_path / "merged", PROMPTS)
    assert said != generate_all(tiny_model, PROMPTS)
