"""The check of a GPU, on a machine without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

pytestmark = pytest.mark.compute

ROOT = Path(__file__).parents[1]


@pytest.fixture
def gpu_check(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The check with two layers of a small model, on the CPU."""
    spec = spec_from_file_location("gpu_check", ROOT / "tools/gpu_check.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "head_dim": 8, "layer_types": None}
    config = module.Qwen3Config(**module.QWEN3_06B.to_dict() | sizes | {"vocab_size": 300})
    monkeypatch.setattr(module.torch.cuda, "get_device_name", lambda: "no GPU")
    monkeypatch.setattr(module, "_DEVICE", "cpu")
    monkeypatch.setattr(module, "QWEN3_06B", config)
    monkeypatch.setattr(module, "_PROMPT_TOKENS", 8)
    monkeypatch.setattr(module, "_GSPO", module._GSPO.model_copy(update={"max_tokens": 4}))
    return module


def test_without_a_gpu_the_check_fails_with_a_one_sentence_error() -> None:
    command = [ROOT / "tools/gpu_check.sh", "packing"]
    environment = {
        **os.environ,
        "PYTHON": str(ROOT / ".venv/bin/python"),
        "CUDA_VISIBLE_DEVICES": "",
    }
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "torch sees no GPU on this machine; run it where there is one"
    )


def test_gspo_writes_its_figures_and_keeps_those_of_other_parts(
    gpu_check: ModuleType, tmp_path: Path
) -> None:
    file = tmp_path / "gpu.json"
    file.write_text('{"packing": {"loss_difference": 0}}')
    gpu_check.measure("gspo", file)
    report = json.loads(file.read_text())
    assert report["packing"] == {"loss_difference": 0}
    figures = report["gspo"]
    assert figures["settings"] == {"num_steps": 6, "prompts_per_step": 4, "group_size": 8}
    assert 0 < figures["answer_tokens"] <= 4
    assert len(figures["tokens_per_second"]) == 5
    assert all(speed > 0 for speed in figures["tokens_per_second"])
    assert figures["reward_std"] > 0
    assert figures["gradient_norm"] > 0


def test_flash_attention_without_its_package_is_a_one_sentence_error(
    gpu_check: ModuleType,
) -> None:
    with pytest.raises(SystemExit, match="flash-attn-4 is not installed on this machine; install"):
        gpu_check.measure("flash-attention")


def test_the_usage_of_the_check_names_all_of_its_parts(gpu_check: ModuleType) -> None:
    usage = (ROOT / "tools/gpu_check.sh").read_text().replace("\n#", "")
    *parts, last = gpu_check.PARTS
    assert f"one of {', '.join(parts)} and {last}." in usage
