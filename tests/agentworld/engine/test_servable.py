"""Models that an engine on this machine cannot serve are refused before it starts."""

import json

import pytest

from accepting import accepts
from agentworld.engine import servable
from agentworld.engine.adapter import ADAPTER
from agentworld.engine.servable import check_servable
from agentworld.engine.server import serve
from agentworld.errors import InputError
from agentworld.recipes.serve import EngineRecipe
from agentworld.records.simulator import Sampling

GATED_DELTA = {
    "model_type": "qwen3_5_text",
    "layer_types": ["linear_attention", "full_attention"],
}
EXPERTS = {"model_type": "qwen3_moe", "num_local_experts": 4}
TRANSFORMERS = EngineRecipe(kind="transformers-serve")
VLLM = EngineRecipe(kind="vllm")
VLLM_BFLOAT16 = EngineRecipe(kind="vllm", dtype="bfloat16")


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A CPU with torchvision by default."""

    def has(*, gpu=False, torchvision=True):
        monkeypatch.setattr(servable, "has_gpu", lambda: gpu)
        monkeypatch.setattr(servable, "find_spec", lambda _: "a spec" if torchvision else None)

    has()
    return has


def model(folder, config, *, adapter=False):
    (folder / "config.json").write_text(json.dumps(config))
    if adapter:
        (folder / ADAPTER).mkdir()
        (folder / ADAPTER / "adapter_config.json").write_text('{"r": 4}')
    return folder


@pytest.mark.parametrize("is_nested", [False, True], ids=["text", "text and images"])
def test_layers_that_transformers_does_not_batch_are_refused_before_an_engine_starts(
    tmp_path, is_nested
):
    folder = model(tmp_path, {"text_config": GATED_DELTA} if is_nested else GATED_DELTA)
    message = r"transformers-serve cannot serve layers of linear_attention, which \S+ has; set the"
    options = {"sampling": Sampling(), "context_tokens": 256, "log": tmp_path / "engine.log"}
    with pytest.raises(InputError, match=message), serve(folder, TRANSFORMERS, **options):
        pass
    assert not (tmp_path / "engine.log").exists()


def test_vllm_without_torchvision_refuses_models_that_import_torchvision(tmp_path, machine):
    folder = model(tmp_path, GATED_DELTA)
    assert accepts(check_servable, VLLM_BFLOAT16, folder)
    machine(torchvision=False)
    message = r"vllm needs torchvision for models of type qwen3_5_text, as \S+; install it"
    with pytest.raises(InputError, match=message):
        check_servable(VLLM_BFLOAT16, folder)
    assert accepts(check_servable, VLLM, model(tmp_path, {"model_type": "qwen3"}))


def test_vllm_on_a_cpu_serves_gated_delta_layers_only_in_bfloat16(tmp_path, machine):
    folder = model(tmp_path, GATED_DELTA)
    message = r"layers of linear_attention, .* in bfloat16 alone, and the engine's dtype is float32"
    with pytest.raises(InputError, match=message):
        check_servable(VLLM, folder)
    machine(gpu=True)
    assert accepts(check_servable, VLLM, folder)


def test_vllm_on_a_cpu_refuses_an_adapter_for_a_model_with_experts(tmp_path, machine):
    assert accepts(check_servable, VLLM, model(tmp_path, EXPERTS))
    folder = model(tmp_path, EXPERTS, adapter=True)
    with pytest.raises(InputError, match=r"serves no adapter beside a model with experts, as \S+;"):
        check_servable(VLLM, folder)
    assert accepts(check_servable, TRANSFORMERS, folder)
    assert accepts(check_servable, VLLM, model(tmp_path, {"model_type": "qwen3"}))
    machine(gpu=True)
    assert accepts(check_servable, VLLM, model(tmp_path, EXPERTS))
