"""Checks that a model's weights have the names and shapes of its class, without reading values.

transformers loads the tensors on the meta device, by the same rules as a model: it renames, joins
and ties weights, and each class has its own rules.
"""

from collections.abc import Iterable
from pathlib import Path

import torch
import transformers
from transformers import CONFIG_MAPPING, AutoConfig, PreTrainedConfig, PreTrainedModel

from agentworld.errors import InputError
from agentworld.storage.weights import WEIGHTS, read_tensors

_NUM_EXAMPLES = 3
"""The number of wrong weights that an error names."""


def check_shapes(folder: Path) -> None:
    """Raises InputError if weights are missing, or have another shape than their class requires.

    It does not check quantised weights, nor a class that transformers does not have or cannot
    construct here.
    """
    config = _config(folder)
    kind = _class_of(config) if config else None
    if config is None or kind is None or hasattr(config, "quantization_config"):
        return
    try:
        missing, mismatched = _load(kind, config, folder)
    except ImportError:  # it needs a package that is not installed
        return
    for wrong, problem in ((missing, "lacks"), (mismatched, "has in another shape")):
        if wrong:
            examples = ", ".join(wrong[:_NUM_EXAMPLES]) + ("..." if wrong[_NUM_EXAMPLES:] else "")
            raise InputError(
                f"{folder} {problem} {len(wrong)} of the weights of {kind.__name__} ({examples});"
                " restore its safetensors files or its config.json"
            )


def _config(folder: Path) -> PreTrainedConfig | None:
    """The configuration; null for an unknown class."""
    try:
        fields, _ = PreTrainedConfig.get_config_dict(folder, local_files_only=True)
        if fields.get("model_type") not in CONFIG_MAPPING:
            return None
        config: PreTrainedConfig = AutoConfig.from_pretrained(folder, local_files_only=True)
    except MemoryError:
        raise
    except Exception as error:  # each class checks its own values, in its own way
        raise _no_model(folder, error) from error
    return config


def _class_of(config: PreTrainedConfig) -> type[PreTrainedModel] | None:
    kinds = (getattr(transformers, name, None) for name in config.architectures or ())
    models = (
        kind for kind in kinds if isinstance(kind, type) and issubclass(kind, PreTrainedModel)
    )
    return next(models, None)


def _load(
    kind: type[PreTrainedModel], config: PreTrainedConfig, folder: Path
) -> tuple[list[str], list[str]]:
    """The names of missing weights, and of weights with another shape."""
    tensors = {
        name: torch.empty(tensor.shape, device="meta")
        for path in _files(folder)
        for name, tensor in read_tensors(path).items()
    }
    try:
        _, loading_info = kind.from_pretrained(
            None,
            config=config,
            state_dict=tensors,
            device_map={"": "meta"},
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        raise _no_model(folder, error) from error
    return sorted(loading_info["missing_keys"]), sorted(
        name for name, *_ in loading_info["mismatched_keys"]
    )


def _files(folder: Path) -> Iterable[Path]:
    """The files of weights that transformers reads."""
    whole = folder / f"model{WEIGHTS}"
    return [whole] if whole.is_file() else sorted(folder.glob(f"*{WEIGHTS}"))


def _no_model(folder: Path, error: Exception) -> InputError:
    message = " ".join(str(error).split())[:200]
    return InputError(
        f"{folder} has no model that transformers can create ({message}); correct its config.json"
    )
