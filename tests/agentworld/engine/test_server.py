"""Real engines: they take seconds to start, and vLLM is there only where it was installed."""

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
DRAWN = Sampling(max_tokens=MAX_TOKENS, temperature=1.0)
PROMPTS = [f"echo {number} > a{number * 7}" for number in range(16)]
SYSTEM = "rimo.txt: kolu tane\n" * 12  # long enough for pages that prompts share
DASHBOARD = Path(__file__).parents[3] / "charts/agentworld/dashboards/engines.json"
CUT_OFF, EMPTY = "cut-off", "unparsable"


def asked(prompt):
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]


def serving(folder, logs, kind="transformers-serve", sampling=GREEDY):
    recipe = EngineRecipe(kind=kind, cache_blocks=128, batch_tokens=256)
    log = logs / "engine.log"
    return serve(folder, recipe, sampling=sampling, context_tokens=CONTEXT_TOKENS, log=log)


def pinned(served, context_tokens=CONTEXT_TOKENS):
    """The engine behind the check that it is the pinned one."""
    engine = {"kind": served.kind, "version": served.version, "lock": records.digest("lock")}
    manifest = records.manifest(engine=engine, context_tokens=context_tokens)
    server = OpenAIEngine(served.url, served.model, kind=served.kind, logprobs=True)
    check = check_of(server, manifest, served.model)
    replica = Replica(server.name, server, check, concurrency=served.concurrency)
    return EnginePool(lambda _: replica, urls=[served.url])


@pytest.fixture(scope="module")
def vllm(tiny_model, tmp_path_factory):
    with serving(tiny_model, tmp_path_factory.mktemp("vllm"), "vllm") as served:
        yield served


@pytest.fixture(scope="module")
def transformers_serve(tiny_model, tmp_path_factory):
    with serving(tiny_model, tmp_path_factory.mktemp("transformers")) as served:
        yield served


def complete_all(engine, prompts, sampling=GREEDY):
    """The engine's completion of each concurrent request, or its error."""

    async def complete(prompt):
        try:
            return await engine.complete(CompletionRequest(asked(prompt), sampling))
        except EngineError as error:
            return error

    async def work():
        completions = await asyncio.gather(*map(complete, prompts))
        await engine.close()
        return completions

    return asyncio.run(work())


def say_all(served, prompts, sampling=GREEDY):
    """The engine's text for each, or the kind of its error."""
    return texts(complete_all(served.connect(), prompts, sampling))


def texts(completions):
    return [each.kind if isinstance(each, EngineError) else each.text for each in completions]


def generate_all(folder, prompts):
    """The text of transformers' own generate for each, or that it did not end."""
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


@pytest.mark.compute
@pytest.mark.parametrize("kind", ["transformers_serve", "vllm"])
def test_a_greedy_engine_gives_the_same_text_as_transformers_generate(kind, tiny_model, request):
    served = request.getfixturevalue(kind)
    expected = generate_all(tiny_model, PROMPTS)
    assert len(set(expected) - {CUT_OFF, EMPTY}) > 4
    assert say_all(served, PROMPTS) == expected
    assert say_all(served, PROMPTS[::-1]) == expected[::-1]


@pytest.mark.compute
def test_vllm_samples_each_answer_by_the_requests_sampling(vllm):
    narrow = DRAWN.model_copy(update={"top_k": 1})
    assert len(set(say_all(vllm, [PROMPTS[0]] * 12, DRAWN))) > 3
    assert len(set(say_all(vllm, [PROMPTS[0]] * 12, narrow))) == 1


@pytest.mark.compute
def test_vllm_returns_a_mean_logprob_for_each_answer(vllm):
    completions = complete_all(pinned(vllm), PROMPTS)
    sure = [each.mean_logprob for each in completions if isinstance(each, Completion)]
    assert len(set(sure)) > 4
    assert all(-20 < each <= 0 for each in sure)


@pytest.mark.compute
def test_vllm_reports_the_cached_tokens_of_each_prompt(vllm):
    prompts = [SYSTEM + prompt for prompt in PROMPTS]  # on a CPU its pages have 128 tokens
    complete_all(vllm.connect(), prompts)
    again = complete_all(vllm.connect(), prompts)
    told = [each for each in again if isinstance(each, Completion)]
    assert told
    assert all(0 < each.num_cached_tokens < each.num_prompt_tokens for each in told)


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
    for another in (vllm._replace(version="vllm 0.11.0"), vllm._replace(model="another")):
        assert texts(complete_all(pinned(another), PROMPTS[:1])) == ["engine"]
    (refused,) = complete_all(pinned(vllm, context_tokens=512), PROMPTS[:1])
    assert "takes 256 tokens, but 512 is required" in str(refused)


@pytest.mark.compute
def test_transformers_serve_samples_only_with_the_sampling_given_at_its_start(tiny_model, tmp_path):
    with serving(tiny_model, tmp_path, sampling=DRAWN) as served:
        assert len(set(say_all(served, [PROMPTS[0]] * 12, DRAWN))) > 3
        with pytest.raises(InputError, match="start another one"):
            say_all(served, PROMPTS[:1], GREEDY)


@pytest.mark.compute
def test_transformers_serve_uses_the_top_k_given_at_its_start(tiny_model, tmp_path):
    narrow = DRAWN.model_copy(update={"top_k": 1})
    with serving(tiny_model, tmp_path, sampling=narrow) as served:
        assert say_all(served, PROMPTS, narrow) == generate_all(tiny_model, PROMPTS)


@pytest.mark.compute
@pytest.mark.parametrize("kind", ["transformers_serve", "vllm"])
def test_a_message_above_the_context_length_is_refused_and_others_are_answered(kind, request):
    served = request.getfixturevalue(kind)
    prompts = [PROMPTS[0], "kolu tane " * 10_000, *PROMPTS[1:]]
    first, refused, *others = complete_all(served.connect(), prompts)
    assert (refused.kind, refused.retryable) == ("context", False)
    assert texts([first, *others]) == say_all(served, PROMPTS)


@pytest.mark.compute
def test_a_prompt_that_fits_the_context_but_not_the_cache_is_refused(tiny_model, tmp_path):
    recipe = EngineRecipe(cache_blocks=6, batch_tokens=256)  # of 32 tokens each
    log = tmp_path / "engine.log"
    with serve(tiny_model, recipe, sampling=GREEDY, context_tokens=1024, log=log) as served:
        long, short = [{"role": "user", "content": "kolu " * 200}], [PROMPTS[0]]
        with pytest.raises(EngineError, match="do not fit in the context length of 192") as refused:
            asyncio.run(served.connect().complete(CompletionRequest(long, GREEDY)))
        assert refused.value.kind == "context"
        assert "engine" not in say_all(served, short)


def posts(served, *paths):
    return [httpx.post(served.url + path, json={}, trust_env=False).status_code for path in paths]


@pytest.mark.compute
def test_transformers_serve_has_no_endpoint_to_reset_or_load_a_model(transformers_serve):
    assert posts(transformers_serve, "/reset", "/load_model", "/v1/completions") == [404] * 3


FULL = {
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
    def pin_and_ask(served):
        recipe = EngineRecipe(kind=kind, cache_blocks=128, batch_tokens=256)
        lock = records.digest("lock")
        made = pin(ArtifactManifest.of(tiny_model), world, recipe, lock=lock, context_tokens=512)
        return made.digest, say_all(served, PROMPTS)

    world = SimulateRecipe()
    before = pin_and_ask(request.getfixturevalue(kind.replace("-", "_")))
    for name, value in FULL.items():
        monkeypatch.setenv(name, value)
    with serving(tiny_model, tmp_path, kind) as served:
        assert pin_and_ask(served) == before
        environment = Path(f"/proc/{served.server.process.pid}/environ").read_bytes()
        changing = ("/weight_checker", "/collective_rpc", "/v1/load_lora_adapter")
        assert posts(served, *changing) == [404] * 3
    given = dict(each.decode().split("=", 1) for each in environment.split(b"\0") if each)
    same = {name for name, value in FULL.items() if given.get(name) == value}
    assert same == {"CUDA_VISIBLE_DEVICES"}  # where it runs


@pytest.mark.compute
def test_a_dead_engine_is_an_engine_error_with_its_name_and_status(tiny_model, tmp_path):
    def work():
        with serving(tiny_model, tmp_path) as served:
            os.kill(served.server.process.pid, signal.SIGKILL)
            served.server.process.wait()
            assert say_all(served, PROMPTS[:1]) == ["engine"]

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
    """A copy of a model merged with an adapter of rank 4, and another one with it beside."""
    import torch
    from safetensors.torch import load_file, save_file

    from agentworld.recipes.train import LoraRecipe
    from agentworld.train.model import load_model
    from agentworld.train.parent import Parent

    merged, beside = folder / "merged", folder / "beside"
    weights = load_file(merged / "model.safetensors")
    recipe = LoraRecipe(rank=4, alpha=8, target_modules=("q_proj",))
    adapted = load_model(Parent(beside)).with_adapter(recipe, seed=0)
    torch.manual_seed(1)
    with torch.no_grad():
        for number, layer in enumerate(adapted.model.model.layers):
            down, up = torch.randn(4, 64), torch.randn(128, 4)
            layer.self_attn.q_proj.lora_A["default"].weight.copy_(down)
            layer.self_attn.q_proj.lora_B["default"].weight.copy_(up)
            weights[f"model.layers.{number}.self_attn.q_proj.weight"] += 2 * up @ down
    save_file(weights, merged / "model.safetensors", metadata={"format": "pt"})
    adapted.save(beside)


@pytest.mark.compute
@pytest.mark.parametrize("kind", ["transformers-serve", "vllm"])
def test_an_engine_answers_with_an_adapter_as_with_the_merged_weights(kind, tiny_model, tmp_path):
    for name in ("merged", "beside"):
        shutil.copytree(tiny_model, tmp_path / name)
    lora(tmp_path)
    with serving(tmp_path / "beside", tmp_path, kind) as served:
        said = texts(complete_all(pinned(served), PROMPTS))
    assert said == generate_all(tmp_path / "merged", PROMPTS)
    assert said != generate_all(tiny_model, PROMPTS)
