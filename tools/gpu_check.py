"""Measures training on one GPU with random weights and random tokens: `tools/gpu_check.sh`."""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from agentworld.recipes.train import LoraRecipe, NextTokenRecipe, WorldRlRecipe
from agentworld.records.progress import ignore_progress
from agentworld.runner.code import commit
from agentworld.train import packing as packing_module
from agentworld.train.encode import Row
from agentworld.train.model import LanguageModel
from agentworld.train.packing import PACKED_ATTENTION, pack
from agentworld.train.trainer import train_rows
from benchmarks.gpu_speed import WARM_UP_STEPS, EnoughSteps, measure_speed
from benchmarks.machine import machine
from benchmarks.qwen3_sizes import QWEN3_06B, QWEN3_8B, RECIPE
from benchmarks.random_rows import log_normal_lengths, random_rows

_varlen = packing_module.varlen_attn
_has_flash_attention = packing_module.has_flash_attention
Figures = dict[str, Any]

_VERSIONS = {"torch": torch.__version__, "transformers": transformers.__version__}
_DEVICE = "cuda"
_LONGEST = 8_192
_GSPO = WorldRlRecipe(num_steps=6, prompts_per_step=4, group_size=8, max_tokens=128)
_PROMPT_TOKENS = 1_024


def _varlen_of_an_older_torch(*tensors: Any, enable_gqa: bool, **options: Any) -> Any:  # noqa: ARG001
    """Before 2.12 it takes fewer heads of keys than of queries without being told."""
    return _varlen(*tensors, **options)


if "enable_gqa" not in signature(_varlen).parameters:
    packing_module.varlen_attn = _varlen_of_an_older_torch
# The part flash-attention alone uses the package, also where it is installed.
packing_module.has_flash_attention = lambda _device, _width: False


def main() -> None:
    """Prints what a part measured, and adds it to a file."""
    part, *file = sys.argv[1:]
    if not torch.cuda.is_available():
        sys.exit("torch sees no GPU on this machine; run it where there is one")
    measure(part, *map(Path, file))


def measure(part: str, *files: Path) -> None:
    """Runs a part; its figures are written when it has ended."""
    figures = {"versions": _VERSIONS, "date": f"{datetime.now(UTC):%Y-%m-%d}", **PARTS[part]()}
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    for path in files:
        before = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**before, **_provenance(path), part: figures}, indent=2) + "\n")


def _provenance(path: Path) -> Figures:
    """What every file of figures says of its machine and its code."""
    on = {**machine(), "processor": torch.cuda.get_device_name()}
    command = f"tools/gpu_check.sh PART {path}"
    return {"command": command, "machine": on, "commit": commit(), "missed": []}


def packing() -> Figures:
    """A packed batch against its rows one at a time, in bfloat16: losses and gradients."""
    two_layers = {"num_hidden_layers": 2, "layer_types": None}
    model = _model(Qwen3Config(**QWEN3_06B.to_dict() | two_layers))
    rows = _rows([5, 700, 33, 1_500])
    alone = [_loss_and_gradient(model, [row]) for row in rows]
    apart = sum(loss for loss, _ in alone)
    gradient = torch.stack([gradient for _, gradient in alone]).sum(0)
    model.set_attn_implementation(PACKED_ATTENTION)
    of_packed, gradient_of_packed = _loss_and_gradient(model, rows)
    difference = (gradient_of_packed - gradient).norm() / gradient.norm()
    return {
        "loss_difference": abs(of_packed - apart) / apart,
        "gradient_difference": difference.item(),
    }


def cpt() -> Figures:
    """Tokens a second of 0.6 billion parameters, by lengths of rows and by how batches are made."""
    whole, varied = _rows([_LONGEST] * 512), _rows(log_normal_lengths(4_000, 1_024, _LONGEST))
    model = _model(QWEN3_06B)
    plain = measure_speed(model, varied, tokens_per_batch=16_384, compile_layers=False)
    return {
        "formula": "tokens/s * (6 N + 6 L H d T) / 989e12; T is the mean length of a token's row",
        "whole_8k_packed": measure_speed(model, whole, tokens_per_batch=16_384),
        "whole_8k_packed_recomputed": measure_speed(
            model, whole, tokens_per_batch=32_768, gradient_checkpointing=True
        ),
        "varied_packed": measure_speed(model, varied, tokens_per_batch=16_384),
        "varied_packed_not_compiled": plain,  # measured first: what is compiled stays so
        "varied_padded": measure_speed(model, varied, tokens_per_batch=16_384, packing=False),
    }


def flash_attention() -> Figures:
    """With FlashAttention 4: the gradients, the speed for rows of two kinds, and the profile."""
    try:
        package = f"flash-attn-4 {version('flash-attn-4')}"
    except PackageNotFoundError:
        sys.exit("flash-attn-4 is not installed on this machine; install it with pip")
    packing_module.has_flash_attention = _has_flash_attention
    difference = packing()
    whole, varied = _rows([_LONGEST] * 512), _rows(log_normal_lengths(4_000, 1_024, _LONGEST))
    model = _model(QWEN3_06B)
    return {
        "package": package,
        **difference,
        "whole_8k_packed": measure_speed(model, whole, tokens_per_batch=16_384),
        "whole_8k_packed_recomputed": measure_speed(
            model, whole, tokens_per_batch=32_768, gradient_checkpointing=True
        ),
        "varied_packed": measure_speed(model, varied, tokens_per_batch=16_384),
        **profile(),
    }


def profile() -> Figures:
    """Where the time of a compiled step of packed rows goes: the longest kernels."""
    model = _model(QWEN3_06B)
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])

    def on_step(done: int, _total: int) -> None:
        torch.cuda.synchronize()
        if done == WARM_UP_STEPS:
            profiler.start()
        if done == WARM_UP_STEPS + 2:
            profiler.stop()
            raise EnoughSteps

    recipe = RECIPE.model_copy(update={"tokens_per_batch": 16_384})
    rows = _rows([_LONGEST] * 64)
    with tempfile.TemporaryDirectory() as folder, suppress(EnoughSteps):
        train_rows(LanguageModel(model, None), recipe, rows, Path(folder), on_step)
    kernels = sorted(profiler.key_averages(), key=lambda kernel: -kernel.device_time_total)
    return {
        "milliseconds_in_two_steps": {
            f"{kernel.key[:90]} x{kernel.count}": round(kernel.device_time_total / 1_000, 1)
            for kernel in kernels[:30]
        }
    }


def full_8b() -> Figures:
    """The memory of all of 8 billion parameters, in three steps."""
    settings = {"tokens_per_batch": _LONGEST, "gradient_checkpointing": True}
    return measure_speed(_model(QWEN3_8B), _rows([_LONGEST] * 16), **settings)


def lora_8b() -> Figures:
    """The memory of an adapter beside 8 billion frozen parameters."""
    settings = {"tokens_per_batch": _LONGEST, "gradient_checkpointing": True}
    settings |= {"compile_layers": False, "lora": LoraRecipe()}
    figures = measure_speed(_model(QWEN3_8B), _rows([_LONGEST] * 16), **settings)
    figures.pop("mfu", None)  # its formula counts gradients of all weights
    return figures


def resume(*, deterministic: bool = False) -> Figures:
    """Whether a training of 0.6 billion parameters that was killed ends with the same weights."""
    settings = {"checkpoint_every": 2, "tokens_per_batch": _LONGEST, "deterministic": deterministic}
    recipe = RECIPE.model_copy(update=settings)
    rows = _rows([_LONGEST // 4] * 16)
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = _trained(recipe, rows, Path(folder, "uninterrupted"), None)
        started = time.perf_counter()
        _trained(recipe, rows, Path(folder, "killed"), 3)
        resumed = _trained(recipe, rows, Path(folder, "killed"), None)
        seconds = time.perf_counter() - started
    different = sum(
        not torch.equal(weight, resumed[name]) for name, weight in uninterrupted.items()
    )
    largest = max(
        (weight - resumed[name]).abs().max().item() for name, weight in uninterrupted.items()
    )
    return {
        "weights": len(uninterrupted),
        "different_weights": different,
        "largest_difference": largest,
        "killed_and_resumed_seconds": round(seconds, 1),
    }


def gspo() -> Figures:
    """GSPO of 0.6 billion parameters, on answers that transformers samples."""
    gspo = import_module("benchmarks.gspo")  # no other part needs datasets
    return gspo.measure_gspo(_model(QWEN3_06B), _GSPO, _PROMPT_TOKENS)


PARTS: dict[str, Callable[[], Figures]] = {
    "packing": packing,
    "cpt": cpt,
    "flash-attention": flash_attention,
    "profile": profile,
    "full-8b": full_8b,
    "lora-8b": lora_8b,
    "resume": resume,
    "resume-deterministic": partial(resume, deterministic=True),
    "gspo": gspo,
}


def _model(config: Qwen3Config) -> PreTrainedModel:
    torch.manual_seed(0)
    with torch.device(_DEVICE):
        model = Qwen3ForCausalLM(config)
    model.set_attn_implementation("sdpa")
    return model.train()


def _rows(lengths: list[int]) -> list[Row]:
    return random_rows(lengths, QWEN3_06B.vocab_size)


def _loss_and_gradient(model: PreTrainedModel, rows: list[Row]) -> tuple[float, torch.Tensor]:
    """Of one sequence; the gradient is that of one matrix of the first layer."""
    model.zero_grad()
    batch = {
        name: value.cuda() if isinstance(value, torch.Tensor) else value
        for name, value in pack(rows).items()
    }
    is_target = batch.pop("is_target")[:, 1:]
    with torch.autocast("cuda", torch.bfloat16):
        logits = model(**batch, use_cache=False).logits[:, :-1][is_target]
    loss = cross_entropy(logits.float(), batch["input_ids"][:, 1:][is_target], reduction="sum")
    loss.backward()
    return loss.item(), model.model.layers[0].self_attn.q_proj.weight.grad.clone()


def _trained(
    recipe: NextTokenRecipe, rows: list[Row], out: Path, killed_after: int | None
) -> dict[str, torch.Tensor]:
    def on_step(done: int, _total: int) -> None:
        if done == killed_after:
            raise EnoughSteps

    model = _model(QWEN3_06B)
    on_progress = on_step if killed_after else ignore_progress
    with suppress(EnoughSteps):
        train_rows(LanguageModel(model, None), recipe, rows, out, on_progress)
    return {name: weight.cpu() for name, weight in model.state_dict().items()}


if __name__ == "__main__":
    main()
