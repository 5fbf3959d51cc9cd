"""LoRA: small matrices beside the frozen matrices of a model's layers, by PEFT.

Hu et al. 2021, https://arxiv.org/abs/2106.09685.
"""

import json
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict
from peft.tuners.lora import LoraLayer
from safetensors.torch import save_file
from torch.nn import Linear
from transformers import PreTrainedModel

from agentworld.errors import InputError
from agentworld.recipes.train import LoraRecipe
from agentworld.train.distributed import rank
from agentworld.train.packing import mixing_layers
from agentworld.train.zero import gathered


def add_adapter(model: PreTrainedModel, recipe: LoraRecipe, seed: int) -> PeftModel:
    """Adds an adapter in place; only its weights are trained, and at first it changes no output.

    Raises InputError for layers that the model does not have, or an adapter that is not served.
    """
    if not recipe.merge and (mixing := mixing_layers(model)):
        raise InputError(
            f"lora.merge: false would keep an adapter for layers of {mixing}, which"
            f" {type(model).__name__} has and no engine is tested with; set lora.merge to true"
        )
    torch.manual_seed(seed)
    config = LoraConfig(
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=recipe.dropout,
        target_modules=_target_modules(model, recipe),
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config)


def _target_modules(model: PreTrainedModel, recipe: LoraRecipe) -> list[str]:
    """The names of linear layers; the output layer is outside of `model.model`."""
    names = {
        name.rpartition(".")[2]
        for name, module in model.model.named_modules()
        if isinstance(module, Linear)
    }
    if recipe.target_modules is None:
        return sorted(names)
    if unknown := set(recipe.target_modules) - names:
        raise InputError(
            f"lora.target_modules names {', '.join(sorted(unknown))}, which is no linear layer of"
            f" {type(model).__name__}; choose from {', '.join(sorted(names))}"
        )
    return sorted(recipe.target_modules)


def merge_layers(adapter: PeftModel) -> PreTrainedModel:
    """The model with its adapter merged into its weights, also if these are in parts."""
    for module in adapter.modules():
        if isinstance(module, LoraLayer):
            with gathered(module.parameters(), changed=True):
                module.merge()
    return adapter.unload()


def save_adapter(adapter: PeftModel, folder: Path) -> None:
    """Writes PEFT's files on rank 0; equal weights give equal bytes on any machine.

    PEFT itself would write the base's path, and list layers in the order of their hashes.
    """
    with gathered(weight for weight in adapter.parameters() if weight.requires_grad):
        tensors = get_peft_model_state_dict(adapter, save_embedding_layers=False)
        tensors = {name: tensor.to("cpu", copy=True) for name, tensor in tensors.items()}
    if rank() > 0:
        return
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    fields = adapter.active_peft_config.to_dict()
    fields |= {"base_model_name_or_path": None, "inference_mode": True}
    text = json.dumps(fields, indent=2, sort_keys=True, default=sorted)
    (folder / "adapter_config.json").write_text(text + "\n")
