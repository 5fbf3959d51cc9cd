"""The architecture of a causal LM, from its config.json only: no weights are read or allocated."""

from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

import torch
from torch.nn import ModuleList
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
)

from agentworld.errors import InputError
from agentworld.recipes.train import ModelRecipe, NextTokenRecipe
from agentworld.train.flops import Flops
from agentworld.train.lora import add_adapter
from agentworld.train.model import new_config
from agentworld.train.optimizer import is_for_muon
from agentworld.train.plan.operators import NO_CONTENT

CONFIG = "config.json"


class Architecture(NamedTuple):
    """Numbers of weights; weights that two layers share count once."""

    name: str
    """The name of the model's class."""
    num_frozen: int
    """Frozen weights beside an adapter; 0 if all are trained."""
    num_trained: int
    num_by_muon: int
    """Weights that Muon trains, if the recipe has a rate for it."""
    num_cast: int
    """Weights in the trained matrices of the layers, of which autocast keeps copies in bfloat16."""
    num_embedding: int
    """Weights of the embedding; also of the output layer, which has the same shape."""
    is_embedding_shared: bool
    """Whether the output layer shares the weights of the embedding."""
    is_embedding_trained: bool
    num_largest: int
    """Weights of the largest trained layer."""
    num_gathered: int
    """Weights of the largest layer, frozen or not, or of the embedding: the most that ZeRO stage 3
    gathers at once.
    """
    hidden_size: int
    vocabulary_size: int
    context_tokens: int
    flops: Flops | None
    """Null for an architecture for which the formula is not valid."""

    @property
    def num_weights(self) -> int:
        """The weights of the base and its adapter."""
        return self.num_frozen + self.num_trained


def config_of_folder(folder: Path) -> PreTrainedConfig:
    """The config.json of a causal LM; raises InputError if transformers has no such model."""
    path = folder / CONFIG
    if not path.is_file():
        raise InputError(f"there is no {path}; name the folder of a causal LM with --model")
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, TypeError, KeyError) as error:
        problem = " ".join(str(error).split())[:200]
        raise InputError(f"{path} is of no model that transformers knows ({problem})") from error
    return config


def config_of_new(recipe: ModelRecipe) -> PreTrainedConfig:
    """The config of a new model."""
    return new_config(recipe, recipe.vocabulary_size)


def model_without_memory(config: PreTrainedConfig, recipe: NextTokenRecipe) -> PreTrainedModel:
    """The model on the meta device, in float32, with the recipe's adapter.

    Raises InputError for a config that is not of a causal LM.
    """
    with torch.device("meta"):
        try:
            model = AutoModelForCausalLM.from_config(
                deepcopy(config),
                dtype=torch.float32,
                attn_implementation=NO_CONTENT,
                experts_implementation=NO_CONTENT,
                trust_remote_code=False,
            )
        except ValueError as error:  # transformers has no such class
            raise InputError(
                f"{config.model_type} is not a causal LM in transformers; name the folder of one"
                " with --model"
            ) from error
        if recipe.lora:
            add_adapter(model, recipe.lora, recipe.seed)
    return model


def architecture_of(model: PreTrainedModel) -> Architecture:
    """The numbers of a model."""
    text, embedding = model.config.get_text_config(), model.get_input_embeddings().weight
    layers = layers_of(model)
    return Architecture(
        name=type(model).__name__,
        num_frozen=_num(model) - _num(model, is_trained=True),
        num_trained=_num(model, is_trained=True),
        num_by_muon=sum(
            weight.numel()
            for name, weight in model.named_parameters()
            if weight.requires_grad and is_for_muon(name, weight)
        ),
        num_cast=sum(
            weight.numel()
            for weight in layers.parameters()
            if weight.ndim == 2 and weight.requires_grad
        ),
        num_embedding=embedding.numel(),
        is_embedding_shared=model.get_output_embeddings().weight is embedding,
        is_embedding_trained=embedding.requires_grad,
        num_largest=max(_num(layer, is_trained=True) for layer in layers),
        num_gathered=max(embedding.numel(), *(_num(layer) for layer in layers)),
        hidden_size=text.hidden_size,
        vocabulary_size=text.vocab_size,
        context_tokens=text.max_position_embeddings,
        flops=Flops.of(model),
    )


def layers_of(model: PreTrainedModel) -> ModuleList:
    """The layers to which gradient checkpointing applies, in their order."""
    names = set(model._no_split_modules or ())
    for module in model.modules():
        if isinstance(module, ModuleList) and len(module) and type(module[0]).__name__ in names:
            return module
    raise InputError(f"{type(model).__name__} has no layers that can be planned")


def _num(module: torch.nn.Module, *, is_trained: bool = False) -> int:
    return sum(
        weight.numel() for weight in module.parameters() if weight.requires_grad or not is_trained
    )
