"""Real engines: they take seconds to start, and vLLM runs only where it is installed."""

import asyncio
import json
import os
import re
import shutil
import signal
from pathlib import Path

import httpx
import pytest

from agentworld.engine.attestation import check_of
from agentworld.engine.base import Completion, CompletionRequest
from agentworld.engine.openai import OpenAIEngine
from agentworld.engine.pool import EnginePool
from agentworld.engine.replica import Replica
from agentworld.engine.server import serve
from agentworld.errors import EngineError, InputError
from agentworld.pinning.manifest import pin
from agentworld.recipes.serve import EngineRecipe, SimulateRecipe
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.simulator import Sampling
from make import records

MAX_TOKENS, CONTEXT_TOKENS = 40, 256
GREEDY = Sampling(max_tokens=MAX_TOKENS)
RANDOM = Sampling(max_tokens=MAX_TOKENS, temperature=1.0)
PROMPTS = [f"echo {number} > a{number * 7}" for number in range(16)]
SYSTEM = "rimo.txt: kolu tane\n" * 12  # long enough for pages that prompts share
DASHBOARD = Path(__file__).parents[3] / "charts/agentworld/dashboards/engines.json"
CUT_OFF, EMPTY = "cut-off", "unparsable"


def messages_for(prompt):
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]


def serving(folder, logs, kind="transformers-serve", sampling=GREEDY):
    recipe = EngineRecipe(kind=kind, cache_blocks=128, batch_tokens=256)
    log = logs / "engine.log"
    return serve(folder, recipe, sampling=sampling, context_tokens=CONTEXT_TOKENS, log=log)


def pinned_engine(engine, context_tokens=CONTEXT_TOKENS):
    """The engine, behind a check that it is the pinned engine."""
    engine_pin = {"kind": engine.kind, "version": engine.version, "lock": records.digest("lock")}
    manifest = records.manifest(engine=engine_pin, context_tokens=context_tokens)
    server = OpenAIEngine(engine.url, engine.model, kind=engine.kind, logprobs=True)
    check = check_of(server, manifest, engine.model)
    replica = Replica(server.name, server, check, concurrency=engine.concurrency)
    return EnginePool(lambda _: replica, urls=[engine.url])


@pytest.fixture(scope="module")
def vllm(tiny_model, tmp_path_factory):
    with serving(tiny_model, tmp_path_factory.mktemp("vllm"), "vllm") as engine:
        yield engine


@pytest.fixture(scope="module")
def transformers_serve(tiny_model, tmp_path_factory):
    with serving(tiny_model, tmp_path_factory.mktemp("transformers")) as engine:
        yield engine


def complete_all(engine, prompts, sampling=GREEDY):
    """The engine's completion of each concurrent request, or its error."""

    async def complete(prompt):
        try:
            return await engine.complete(CompletionRequest(messages_for(prompt), sampling))
        except EngineError as error:
            return error

    async def work():
        completions = await asyncio.gather(*map(complete, prompts))
        await engine.close()
        return completions

    return asyncio.run(work())


def ask_all(engine, prompts, sampling=GREEDY):
    """The engine's text for each prompt, or the kind of its error."""
    return texts(complete_all(engine.connect(), prompts, sampling))


def texts(completions):
    return [item.kind if isinstance(item, EngineError) else item.text for item in completions]


def generate_all(folder, prompts):
    """The text of transformers' own generate for each prompt, or CUT_OFF if it did not end."""
    from transformers import AutoTokenizer, Qwen3ForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = Qwen3ForCausalLM.from_pretrained(folder)
    return [_generate(tokenizer, model, prompt) for prompt in prompts]


def _generate(tokenizer, model, prompt):
    inputs = tokenizer.apply_chat_template(
        messages_for(prompt), add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    outputs = model.generate(**inputs, do_sample=False, max_new_tokens=MAX_TOKENS)
    ids = outputs[0, inputs["input_ids"].shape[1] :]
    if ids[-1] != tokenizer.eos_token_id:
        return CUT_OFF
    return tokenizer.decode(ids, skip_special_tokens=True) or EMPTY


@pytest.mark.compute
@pytest.mark.parametrize("kind", ["transformers_serve", "vllm"])
def test_a_greedy_engine_gives_the_same_text_as_transformers_generate(kind, tiny_model, request):
    engine = request.getfixturevalue(kind)
    expected = generate_all(tiny_model, PROMPTS)
    assert len(set(expected) - {CUT_OFF, EMPTY}) > 4
    assert ask_all(engine, PROMPTS) == expected
    assert ask_all(engine, PROMPTS[::-1]) == expected[::-1]


@pytest.mark.compute
def test_vllm_samples_each_answer_by_the_requests_sampling(vllm):
    narrow = RANDOM.model_copy(update={"top_k": 1})
    assert len(set(ask_all(vllm, [PROMPTS[0]] * 12, RANDOM))) > 3
    assert len(set(ask_all(vllm, [PROMPTS[0]] * 12, narrow))) == 1


@pytest.mark.compute
def test_vllm_returns_a_mean_logprob_for_each_answer(vllm):
    completions = complete_all(pinned_engine(vllm), PROMPTS)
    logprobs = [item.mean_logprob for item in completions if isinstance(item, Completion)]
    assert len(set(logprobs)) > 4
    assert all(-20 < logprob <= 0 for logprob in logprobs)


@pytest.mark.compute
def test_vllm_reports_the_cached_tokens_of_each_prompt(vllm):
    prompts = [SYSTEM + prompt for prompt in PROMPTS]  # on a CPU its pages have 128 tokens
    complete_all(vllm.connect(), prompts)
    completions = complete_all(vllm.connect(), prompts)
    answers = [item for item in completions if isinstance(item, Completion)]
    assert answers
    assert all(0 < answer.num_cached_tokens < answer.num_prompt_tokens for answer in answers)


@pytest.mark.compute
def test_the_engines_dashboard_queries_only_metrics_that_vllm_exports(vllm):
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queried_series = set(re.findall(r"vllm:\w+", " ".join(queries)))
    metrics = httpx.get(f"{vllm.url}/metrics").text
    series = {line.partition("{")[0] for line in metrics.splitlines()}
    assert queried_series
    assert queried_series <= series


@pytest.mark.compute
def test_a_vllm_that_differs_from_the_manifest_is_refused(vllm):
    for other_engine in (vllm._replace(version="vllm 0.11.0"), vllm._replace(model="another")):
        assert texts(complete_all(pinned_engine(other_engine), PROMPTS[:1])) == ["engine"]
    (error,) = complete_all(pinned_engine(vllm, context_tokens=512), PROMPTS[:1])
    assert "takes 256 tokens, but 512 is required" in str(error)


@pytest.mark.compute
def test_transformers_serve_samples_only_with_the_sampling_given_at_its_start(tiny_model, tmp_path):
    with serving(tiny_model, tmp_path, sampling=RANDOM) as engine:
        assert len(set(ask_all(engine, [PROMPTS[0]] * 12, RANDOM))) > 3
        with pytest.raises(InputError, match="start another one"):
            ask_all(engine, PROMPTS[:1], GREEDY)


@pytest.mark.compute
def test_transformers_serve_uses_the_top_k_given_at_its_start(tiny_model, tmp_path):
    narrow = RANDOM.model_copy(update={"top_k": 1})
    with serving(tiny_model, tmp_path, sampling=narrow) as engine:
        assert ask_all(engine, PROMPTS, narrow) == generate_all(tiny_model, PROMPTS)


@pytest.mark.compute
@pytest.mark.parametrize("kind", ["transformers_serve", "vllm"])
def test_a_message_above_the_context_length_is_refused_and_others_are_answered(kind, request):
    engine = request.getfixturevalue(kind)
    prompts = [PROMPTS[0], "kolu tane " * 10_000, *PROMPTS[1:]]
    first_completion, error, *other_completions = complete_all(engine.connect(), prompts)
    assert (error.kind, error.retryable) == ("context", False)
    assert texts([first_completion, *other_completions]) == ask_all(engine, PROMPTS)


@pytest.mark.compute
def test_a_prompt_that_fits_the_context_but_not_the_cache_is_refused(tiny_model, tmp_path):
    recipe = EngineRecipe(cache_blocks=6, batch_tokens=256)  # of 32 tokens each
    log = tmp_path / "engine.log"
    with serve(tiny_model, recipe, sampling=GREEDY, context_tokens=1024, log=log) as engine:
        long, short = [{"role": "user", "content": "kolu " * 200}], [PROMPTS[0]]
        with pytest.raises(EngineError, match="do not fit in the context length of 192") as error:
            asyncio.run(engine.connect().complete(CompletionRequest(long, GREEDY)))
        assert error.value.kind == "context"
        assert "engine" not in ask_all(engine, short)


def post_all(engine, *paths):
    return [httpx.post(engine.url + path, json={}, trust_env=False).status_code for path in paths]


@pytest.mark.compute
def test_transformers_serve_has_no_endpoint_to_reset_or_load_a_model(transformers_serve):
    assert post_all(transformers_serve, "/reset", "/load_model", "/v1/completions") == [404] * 3


ENVIRONMENT = {
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
    "VLLM_CPU_KVCACHE_SPACE": "7",
    "TORCH_LOGS": "+dynamo",
    "TORCHDYNAMO_DISABLE": "1",
    "CUDA_LAUNCH_BLOCKING": "1",
    "CUDA_VISIBLE_DEVICES": "0",
    "HF_HUB_OFFLINE": "0",
    "TRANSFORMERS_OFFLINE": "0",
    "OMP_NUM_THREADS": "7",
    "MKL_NUM_THREADS": "7",
    "KMP_AFFINITY": "disabled",
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "LD_PRELOAD": "/nowhere/lib.so",
    "PYTHONHASHSEED": "0",
    "PYTHONPATH": "/nowhere",
}
"""Of each family that an engine supports; most change its kernels, or allow changes of its
weights.
"""


@pytest.mark.compute
@pytest.mark.parametrize("kind", ["transformers-serve", "vllm"])
def test_the_shells_environment_variables_change_no_answer_and_no_digest(
    kind, tiny_model, tmp_path, monkeypatch, request
):
    def pin_and_ask(engine):
        recipe = EngineRecipe(kind=kind, cache_blocks=128, batch_tokens=256)
        lock = records.digest("lock")
        manifest = pin(
            ArtifactManifest.of(tiny_model), world, recipe, lock=lock, context_tokens=512
        )
        return manifest.digest, ask_all(engine, PROMPTS)

    world = SimulateRecipe()
    expected = pin_and_ask(request.getfixturevalue(kind.replace("-", "_")))
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with serving(tiny_model, tmp_path, kind) as engine:
        assert pin_and_ask(engine) == expected
        environment = Path(f"/proc/{engine.server.process.pid}/environ").read_bytes()
        paths = ("/weight_checker", "/collective_rpc", "/v1/load_lora_adapter")
        assert post_all(engine, *paths) == [404] * 3
    variables = dict(entry.decode().split("=", 1) for entry in environment.split(b"\0") if entry)
    unchanged = {name for name, value in ENVIRONMENT.items() if variables.get(name) == value}
    assert unchanged == {"CUDA_VISIBLE_DEVICES"}  # which only selects its GPUs


@pytest.mark.compute
def test_a_dead_engine_is_an_engine_error_with_its_name_and_status(tiny_model, tmp_path):
    def work():
        with serving(tiny_model, tmp_path) as engine:
            os.kill(engine.server.process.pid, signal.SIGKILL)
            engine.server.process.wait()
            assert ask_all(engine, PROMPTS[:1]) == ["engine"]

    with pytest.raises(EngineError, match="transformers-serve ended with status -9; the end of"):
        work()


@pytest.mark.compute
def test_a_folder_without_a_model_is_an_error_with_the_log(tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()

    def work():
        with serving(folder, tmp_path):
            raise AssertionError("an empty folder was served")

    with pytest.raises(EngineError, match=str(tmp_path / "engine.log")):
        work()


def lora(folder):
    """Merges an adapter of rank 4 into one copy of a model, and saves it beside another copy."""
    import torch
    from safetensors.torch import load_file, save_file

    from agentworld.recipes.train import LoraRecipe
    from agentworld.train.model import load_model
    from agentworld.train.parent import Parent

    merged_folder, adapter_folder = folder / "merged", folder / "beside"
    weights = load_file(merged_folder / "model.safetensors")
    recipe = LoraRecipe(rank=4, alpha=8, target_modules=("q_proj",))
    adapted_model = load_model(Parent(adapter_folder)).with_adapter(recipe, seed=0)
    torch.manual_seed(1)
    with torch.no_grad():
        for number, layer in enumerate(adapted_model.model.model.layers):
            down, up = torch.randn(4, 64), torch.randn(128, 4)
            layer.self_attn.q_proj.lora_A["default"].weight.copy_(down)
            layer.self_attn.q_proj.lora_B["default"].weight.copy_(up)
            weights[f"model.layers.{number}.self_attn.q_proj.weight"] += 2 * up @ down
    save_file(weights, merged_folder / "model.safetensors", metadata={"format": "pt"})
    adapted_model.save(adapter_folder)


@pytest.mark.compute
@pytest.mark.parametrize("kind", ["transformers-serve", "vllm"])
def test_an_engine_answers_with_an_adapter_as_with_the_merged_weights(kind, tiny_model, tmp_path):
    for name in ("merged", "beside"):
        shutil.copytree(tiny_model, tmp_path / name)
    lora(tmp_path)
    with serving(tmp_path / "beside", tmp_path, kind) as engine:
        answers = texts(complete_all(pinned_engine(engine), PROMPTS))
    assert answers == generate_all(tmp_path / "merged", PROMPTS)
    assert answers != generate_all(tiny_model, PROMPTS)
