"""Families of models that CPT and SFT train: saved, pinned, and served on a CPU or refused."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from accepting import accepts
from agentworld.engine import programs, servable
from agentworld.engine.adapter import ADAPTER, has_adapter
from agentworld.engine.base import CompletionRequest
from agentworld.engine.chat import CHAT_PATH
from agentworld.engine.openai import request_body
from agentworld.engine.programs import program
from agentworld.engine.server import ServedEngine, serve
from agentworld.errors import InputError
from agentworld.pinning.manifest import check_files, pin
from agentworld.recipes.serve import EngineRecipe, SimulateRecipe
from agentworld.records.base import digest_file
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.message import Message
from agentworld.records.simulator import Sampling, SimulatorManifest
from agentworld.runner.folders import checkpoint_of, model_of
from agentworld.steps.run import run_by_name
from agentworld.train.parent import Parent
from make import records, training

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

pytestmark = pytest.mark.compute

WEIGHTS = "model.safetensors"
ALL_WEIGHTS = {"muon_learning_rate": None, "epochs": 1}
LORA = {"rank": 4, "alpha": 8}
UNMERGED = {"merge": False}
FAKES = Path(__file__).parents[2] / "fakes/torchvision"
PROMPTS = ("echo kolu", "cat rimo.txt", "pwd", "ls tane")
_SAMPLING = Sampling(max_tokens=8)
TRANSFORMERS = EngineRecipe(kind="transformers-serve", cache_blocks=128, batch_tokens=256)
VLLM = EngineRecipe(kind="vllm")
VLLM_BFLOAT16 = EngineRecipe(kind="vllm", dtype="bfloat16")


@pytest.mark.parametrize("family", ["Qwen3", "Qwen3Moe"])
def test_a_merged_cpt_adapter_and_a_kept_sft_adapter_are_pinned_and_served(
    family: str, tmp_path: Path
) -> None:
    merged_model, adapter_model = _train_models(
        tmp_path, family, ALL_WEIGHTS | {"lora": LORA}, ALL_WEIGHTS | {"lora": LORA | UNMERGED}
    )
    assert not has_adapter(merged_model)
    assert has_adapter(adapter_model)
    assert digest_file(adapter_model / WEIGHTS) == digest_file(merged_model / WEIGHTS)
    assert digest_file(merged_model / WEIGHTS) != digest_file(tmp_path / "base" / WEIGHTS)
    checkpoint = checkpoint_of(adapter_model.parent)
    assert checkpoint.artifact == ArtifactManifest.of(adapter_model).digest
    assert checkpoint.parents == (ArtifactManifest.of(merged_model).digest,)

    manifest = _pin_model(adapter_model, TRANSFORMERS)
    assert f"{ADAPTER}/adapter_model.safetensors" in manifest.files
    assert accepts(check_files, manifest, adapter_model)
    assert _answers(adapter_model, TRANSFORMERS, tmp_path) == _generate_all(adapter_model)
    if family == "Qwen3Moe":
        with pytest.raises(InputError, match="serves no adapter beside a model with experts, as"):
            _answers(adapter_model, VLLM, tmp_path)
    (adapter_model / ADAPTER / "adapter_config.json").write_text("{}")
    with pytest.raises(InputError, match=r"adapter_config\.json does not match the manifest"):
        check_files(manifest, adapter_model)


def test_gated_delta_layers_are_trained_and_pinned_and_unsupported_engines_refuse_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpt, model = _train_models(tmp_path, "Qwen3_5", ALL_WEIGHTS, ALL_WEIGHTS | {"lora": LORA})
    digests = {digest_file(folder / WEIGHTS) for folder in (tmp_path / "base", cpt, model)}
    assert len(digests) == 3
    assert not has_adapter(model)

    assert accepts(check_files, _pin_model(model, TRANSFORMERS), model)
    message = r"transformers-serve cannot serve layers of linear_attention, which \S+ has; set the"
    with pytest.raises(InputError, match=message):
        _answers(model, TRANSFORMERS, tmp_path)
    monkeypatch.setattr(servable, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="vllm needs torchvision for models of type qwen3_5_text"):
        _answers(model, VLLM_BFLOAT16, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(
    ("family", "engine"),
    [("Qwen3", VLLM), ("Qwen3Moe", VLLM), ("Qwen3_5", VLLM_BFLOAT16)],
)
def test_a_full_cpt_and_sft_training_is_pinned_and_served_by_vllm(
    family: str, engine: EngineRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, model = _train_models(tmp_path, family, ALL_WEIGHTS, ALL_WEIGHTS)
    if family == "Qwen3_5" and find_spec("torchvision") is None:
        _put_beside_vllm(FAKES, monkeypatch)
    assert accepts(check_files, _pin_model(model, engine), model)
    assert (
        _answers(model, engine, tmp_path)
        == _generate_all(model)
        != _generate_all(tmp_path / "base")
    )


def _put_beside_vllm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vllm = program("vllm")
    environment = vllm.environment() | {"PYTHONPATH": str(folder)}
    monkeypatch.setitem(programs._PROGRAMS, "vllm", vllm._replace(environment=lambda: environment))
    monkeypatch.setattr(servable, "find_spec", lambda _: True)


def _train_models(
    folder: Path, family: str, cpt: dict[str, Any], sft: dict[str, Any]
) -> tuple[Path, Path]:
    """The models of CPT and of SFT after it."""
    from make.model import tiny_family

    base = tiny_family(folder / "base", family)
    inputs = training.training(folder / "store", model={"base": str(base)}, cpt=cpt, sft=sft)
    cpt_folder = run_by_name("cpt", *inputs)
    return model_of(Path(cpt_folder)), model_of(Path(run_by_name("sft", *inputs, cpt_folder)))


def _pin_model(model: Path, engine: EngineRecipe) -> SimulatorManifest:
    recipe, lock = SimulateRecipe(sampling=_SAMPLING), records.digest("lock")
    return pin(ArtifactManifest.of(model), recipe, engine, lock=lock, context_tokens=256)


def _answers(model: Path, engine: EngineRecipe, logs: Path) -> list[str]:
    log = logs / "engine.log"
    with serve(model, engine, sampling=_SAMPLING, context_tokens=256, log=log) as server:
        return [_ask(server, prompt) for prompt in PROMPTS]


def _ask(server: ServedEngine, prompt: str) -> str:
    body = request_body(server.kind, server.model, CompletionRequest(_messages(prompt), _SAMPLING))
    answer = httpx.post(server.url + CHAT_PATH, json=body).raise_for_status().json()
    return str(answer["choices"][0]["message"]["content"])


def _generate_all(folder: Path) -> list[str]:
    """The output of transformers' own generate, with the adapter if there is one."""
    from agentworld.train.model import load_model

    model, tokenizer, _ = load_model(Parent(folder))
    return [_generate(model, tokenizer, prompt) for prompt in PROMPTS]


def _generate(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, prompt: str) -> str:
    inputs = tokenizer.apply_chat_template(
        _messages(prompt), add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    output = model.generate(**inputs, do_sample=False, max_new_tokens=_SAMPLING.max_tokens)
    ids = output[0, inputs["input_ids"].shape[1] :]
    return str(tokenizer.decode(ids, skip_special_tokens=True))


def _messages(prompt: str) -> list[Message]:
    return [{"role": "user", "content": prompt}]
