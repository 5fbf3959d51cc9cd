"""Loads and saves a sharded model (ZeRO stage 3); no process holds the whole model.

The folder's files are those of `save_pretrained` with shards of at most `SHARD_BYTES`, for any
number of processes.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from huggingface_hub import (
    StateDictSplit,
    get_torch_storage_size,
    split_state_dict_into_shards_factory,
)
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import revert_weight_conversion
from transformers.integrations import HfDeepSpeedConfig
from transformers.integrations.deepspeed import _load_state_dict_into_zero3_model
from transformers.modeling_utils import LoadStateDictConfig
from transformers.utils import GENERATION_CONFIG_NAME, SAFE_WEIGHTS_INDEX_NAME

from agentworld.recipes.train import Offload
from agentworld.train.distributed import rank
from agentworld.train.zero import (
    SHARD_BYTES,
    gathered,
    is_in_parts,
    num_elements,
    offloading,
)

_LAYER = re.compile(r".*\.layers\.\d+\.")
_Tensors = dict[str, torch.Tensor]


def load_in_parts(folder: Path, attention: str, offload: Offload | None = None) -> PreTrainedModel:
    """A model in float32, each of whose weights is sharded as soon as it is created.

    Its weights are read layer by layer, because some files have a layer's experts one by one.
    Raises ValueError for files that lack a weight, or have one of another shape.
    """
    zero = {"stage": 3, **offloading(offload)}
    settings = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": zero}
    context = HfDeepSpeedConfig(settings)  # transformers checks it while it exists
    model = AutoModelForCausalLM.from_config(
        AutoConfig.from_pretrained(folder, trust_remote_code=False),
        dtype=torch.float32,
        attn_implementation=attention,
        trust_remote_code=False,
    )
    config = LoadStateDictConfig(weight_mapping=get_model_conversion_mapping(model))
    paths = _files_of_weights(folder)
    missing = set(model.state_dict())
    for names in _layers(paths):
        errors, others = _load_state_dict_into_zero3_model(model, _read(names, paths), config)
        if errors:
            raise ValueError("; ".join(errors))
        missing &= others
    del context
    _check_complete(model, missing)
    # as `from_pretrained` does: the model is saved under the names in its files
    model._weight_conversions = [
        conversion for conversion in config.weight_mapping if conversion.was_used()
    ]
    if (folder / GENERATION_CONFIG_NAME).exists():
        model.generation_config = GenerationConfig.from_pretrained(folder)
    return model.eval()


def _check_complete(model: PreTrainedModel, missing: set[str]) -> None:
    """An output layer that shares the embedding may have no name in the files."""
    weights = model.state_dict(keep_vars=True)
    loaded = {id(weights[name]) for name in weights.keys() - missing}
    if lacking := sorted(name for name in missing if id(weights[name]) not in loaded):
        raise ValueError(f"the weights {', '.join(lacking)} are missing")


def _files_of_weights(folder: Path) -> dict[str, Path]:
    """The file of each weight by its name."""
    paths: dict[str, Path] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            paths |= dict.fromkeys(file.keys(), path)
    return paths


def _read(names: Iterable[str], paths: Mapping[str, Path]) -> _Tensors:
    """The tensors of a layer; files stay mapped into memory as long as their tensors exist."""
    tensors = {}
    for name in names:
        with safe_open(paths[name], framework="pt") as file:
            tensors[name] = file.get_tensor(name)
    return tensors


def save_model(model: PreTrainedModel, folder: Path) -> None:
    """Writes weights and settings on rank 0; all processes take part if the model is sharded."""
    if is_in_parts(model):
        _save_in_parts(model, folder)
    elif rank() == 0:
        model.save_pretrained(folder, max_shard_size=SHARD_BYTES)


def _save_in_parts(model: PreTrainedModel, folder: Path) -> None:
    """Gathers layer by layer, and writes each file when its weights are complete."""
    weights = _weights(model)
    layers = _layers(weights)
    shapes = {
        name: torch.empty(
            getattr(weight, "ds_shape", weight.shape), dtype=weight.dtype, device="meta"
        )
        for name, weight in weights.items()
    }
    layer_of = {
        name: layer
        for layer in layers
        for name in revert_weight_conversion(model, {key: shapes[key] for key in layer})
    }
    split = split_state_dict_into_shards_factory(
        revert_weight_conversion(model, shapes),
        get_storage_size=get_torch_storage_size,
        # Experts that are slices of one tensor go into one file, as in `save_pretrained`.
        get_storage_id=lambda tensor: tensor.untyped_storage()._cdata,
        filename_pattern="model{suffix}.safetensors",
        max_shard_size=SHARD_BYTES,
    )
    if rank() == 0:
        _save_settings(model, folder, split)
    gathered_tensors: _Tensors = {}
    for file, names in split.filename_to_tensors.items():
        for name in names:
            if name not in gathered_tensors:
                layer = {key: weights[key] for key in layer_of[name]}
                gathered_tensors |= _gather(model, layer)
        tensors = {name: gathered_tensors.pop(name) for name in names}
        if rank() == 0:
            save_file(tensors, folder / file, metadata={"format": "pt"})


def _gather(model: PreTrainedModel, layer: _Tensors) -> _Tensors:
    """The tensors of a layer as in its files: on rank 0; the other ranks have only the names."""
    with gathered(layer.values()):
        device = "cpu" if rank() == 0 else "meta"
        tensors = {name: weight.detach().to(device, copy=True) for name, weight in layer.items()}
    tensors = revert_weight_conversion(model, tensors)
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def _save_settings(model: PreTrainedModel, folder: Path, split: StateDictSplit) -> None:
    model.config.dtype = "float32"
    model.config.architectures = [type(model).__name__]
    folder.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    if split.is_sharded:
        num_parameters = sum(num_elements(weight) for weight in model.parameters())
        index = {
            "metadata": {"total_parameters": num_parameters, **split.metadata},
            "weight_map": split.tensor_to_filename,
        }
        text = json.dumps(index, indent=2, sort_keys=True)
        (folder / SAFE_WEIGHTS_INDEX_NAME).write_text(text + "\n")


def _weights(model: PreTrainedModel) -> _Tensors:
    """The weights and buffers that are saved, by name; an output layer may share the embedding."""
    ids: set[int] = set()
    weights = {}
    for name, weight in model.state_dict(keep_vars=True).items():
        if id(weight) not in ids:
            ids.add(id(weight))
            weights[name] = weight
    return weights


def _layers(names: Iterable[str]) -> list[list[str]]:
    """The names of each layer as a group, and each other name alone."""
    layers: dict[str, list[str]] = {}
    for name in names:
        layer = _LAYER.match(name)
        layers.setdefault(layer.group() if layer else name, []).append(name)
    return list(layers.values())
