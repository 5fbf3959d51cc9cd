"""ZeRO: several processes shard the state of a training (optimizer, gradients, weights).

DeepSpeed implements it, after Rajbhandari et al. 2020, https://arxiv.org/abs/1910.02054. A single
process trains without it.
"""

import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType
from transformers import Trainer, TrainingArguments

from agentworld.errors import InputError
from agentworld.recipes.environment import from_environment
from agentworld.recipes.ranks import Ranks
from agentworld.recipes.train import Offload
from agentworld.storage.working_copy import copy_of
from agentworld.train.distributed import num_ranks

SHARD_BYTES = 5_000_000_000
"""The most in a file of weights, and the most that a process gathers at stage 3 beside its part."""


def check_zero(stage: int | None, out: Path) -> None:
    """Raises InputError if a recipe needs DeepSpeed and it is not installed, or if the parts of a
    checkpoint could not be joined.
    """
    if stage is None:
        return
    if from_environment(Ranks).is_of_several_machines and copy_of(out):
        raise InputError(
            f"zero_stage {stage} has a part of each checkpoint on each machine, and only the first"
            " puts back what it has into a bucket; name a store on a claim"
        )
    if find_spec("deepspeed") is None:
        raise InputError(
            f"zero_stage {stage} needs DeepSpeed, which is not installed; install"
            " agentworld[deepspeed], or leave zero_stage out"
        )


def computing(
    stage: int | None, *, in_bfloat16: bool, offload: Offload | None = None
) -> dict[str, Any]:
    """A trainer's arguments for device, precision and DeepSpeed; weights stay in float32.

    Construct the trainer directly after this call, because the call configures Accelerate.
    """
    has_gpu = torch.cuda.is_available()
    # older GPUs would only emulate bfloat16
    if has_gpu and not torch.cuda.is_bf16_supported(including_emulation=False):
        in_bfloat16 = False
    if stage is None or num_ranks() == 1:
        return {"use_cpu": not has_gpu, "bf16": in_bfloat16}
    # With `use_cpu` Accelerate ignores DeepSpeed, and without it each process on a CPU assumes that
    # it is the only one.
    AcceleratorState._reset_state(reset_partial_state=True)
    PartialState(cpu=not has_gpu).distributed_type = DistributedType.DEEPSPEED
    # torch's warning about DeepSpeed, which would repeat at each step
    warnings.filterwarnings("ignore", r"`torch\.distributed\.\w+` is deprecated", FutureWarning)
    return {
        "bf16": False,
        "accelerator_config": {"use_configured_state": True},
        "deepspeed": _deepspeed_config(stage, offload, in_bfloat16=in_bfloat16),
    }


def on_one_device(arguments: TrainingArguments) -> TrainingArguments:
    """The same arguments for a trainer that uses one device.

    By default a trainer splits each batch over all visible devices, and the loss here is not the
    mean over such parts. Several devices need several processes.
    """
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments


def offloading(offload: Offload | None) -> dict[str, Any]:
    """DeepSpeed's settings for offloading to the CPU's memory."""
    # torch rounds page-locked memory up to a power of two, up to twice what a plan counts.
    memory = {"device": "cpu", "pin_memory": False}
    parts = {None: (), "optimizer": ("optimizer",), "parameters": ("optimizer", "param")}
    return {f"offload_{part}": memory for part in parts[offload]}


def _deepspeed_config(stage: int, offload: Offload | None, *, in_bfloat16: bool) -> dict[str, Any]:
    """DeepSpeed's configuration; the trainer's arguments and the model replace `auto`."""
    return {
        "zero_optimization": {
            "stage": stage,
            # DeepSpeed's defaults suit large models: 2 GB on each device, small weights not cut.
            "reduce_bucket_size": "auto",
            "stage3_prefetch_bucket_size": "auto",
            "stage3_param_persistence_threshold": "auto",
            # The most weights that are gathered, or updated, at once.
            "stage3_max_live_parameters": SHARD_BYTES // 4,
            "stage3_max_reuse_distance": SHARD_BYTES // 4,
            "sub_group_size": SHARD_BYTES // 4,
            **offloading(offload),
        },
        # torch's AdamW also runs on CPUs; DeepSpeed's own is compiled at its first use.
        "zero_force_ds_cpu_optimizer": False,
        # As without DeepSpeed: layers compute in bfloat16, weights and gradient sums are float32.
        # Its `bf16` would round the weights.
        "torch_autocast": {
            "enabled": in_bfloat16,
            "dtype": "bfloat16",
            "lower_precision_safe_modules": [],
        },
        "gradient_clipping": "auto",
        "gradient_accumulation_steps": "auto",
        "train_micro_batch_size_per_gpu": "auto",
    }


def is_in_parts(model: torch.nn.Module) -> bool:
    """Whether each process has only a part of each weight."""
    return any(hasattr(weight, "ds_id") for weight in model.parameters())


def num_elements(weight: torch.Tensor) -> int:
    """The size of the whole weight, even if this process has a part of it."""
    return int(getattr(weight, "ds_numel", weight.numel()))


def gathered(
    weights: Iterable[torch.Tensor], *, changed: bool = False
) -> AbstractContextManager[object]:
    """Gathers weights while the block runs; all processes enter it.

    With `changed`, rank 0's changes are kept.
    """
    parts = [weight for weight in weights if hasattr(weight, "ds_id")]
    if not parts:
        return nullcontext()
    from deepspeed.runtime.zero import GatheredParameters

    return GatheredParameters(parts, modifier_rank=0 if changed else None)  # type: ignore[no-any-return]


def release(trainer: Trainer) -> None:
    """Ends DeepSpeed, if it was used. At stage 3 the weights stay in parts.

    Otherwise they are in the CPU's memory, like those of a model that was loaded from its folder.
    """
    if not trainer.is_deepspeed_enabled:
        return
    if is_in_parts(trainer.model):
        trainer.deepspeed.optimizer.checkpoint_event_prologue()  # frees gathered weights
    trainer.deepspeed.destroy()
    if not is_in_parts(trainer.model):
        for weight in trainer.model.parameters():
            weight.data = weight.data.to("cpu", copy=True)  # out of DeepSpeed's flat buffer
