"""torch.compile for the layers of a causal LM, which all share one compiled code."""

import shutil
import sysconfig
from pathlib import Path

import torch
from transformers import PreTrainedModel

from agentworld.errors import InputError


def compile_layers(model: PreTrainedModel) -> None:
    """Compiles each layer in place on its first call; weights and their names do not change.

    Raises InputError on a CPU without a compiler.
    """
    if not torch.cuda.is_available():
        _check_compiler()
    layer_classes = set(model._no_split_modules or ())
    for module in model.modules():
        if type(module).__name__ in layer_classes:
            # Batches have many shapes: one code for all of them.
            module.compile(dynamic=True)


def _check_compiler() -> None:
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    if shutil.which("g++") is None or not headers.is_file():
        raise InputError(
            f"compile_layers needs g++ and {headers}; install g++ and python3-dev, or set it to"
            " false"
        )
