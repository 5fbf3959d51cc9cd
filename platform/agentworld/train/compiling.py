"""torch.compile for the layers of a causal LM, which all share one compiled code."""

import shutil
import sysconfig
from contextlib import suppress
from pathlib import Path

import torch
from filelock import FileLock, Timeout
from torch._inductor.runtime.cache_dir_utils import cache_dir
from transformers import PreTrainedModel

from agentworld.errors import InputError


def compile_layers(model: PreTrainedModel) -> None:
    """Compiles each layer in place on its first call; weights and their names do not change.

    Raises InputError on a CPU without a compiler.
    """
    if not torch.cuda.is_available():
        _check_compiler()
        remove_unfinished_builds(Path(cache_dir()))
    layer_classes = set(model._no_split_modules or ())
    for module in model.modules():
        if type(module).__name__ in layer_classes:
            # Batches have many shapes, and share one compiled code.
            module.compile(dynamic=True)


def _check_compiler() -> None:
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    if shutil.which("g++") is None or not headers.is_file():
        raise InputError(
            f"compile_layers needs g++ and {headers}; install g++ and python3-dev, or set it to"
            " false"
        )


def remove_unfinished_builds(cache: Path) -> None:
    """Removes from torch's cache the libraries whose compiler was killed: torch would load them.

    While the compiler of `KEY.main.so` runs, `KEY.main_CxxBuild` exists and KEY is locked.
    """
    for folder in cache.glob("*/*_CxxBuild"):
        name = folder.name.removesuffix("_CxxBuild")
        lock = cache / "locks" / f"{name.partition('.')[0]}.lock"
        with suppress(Timeout, FileNotFoundError), FileLock(lock, timeout=0):
            folder.with_name(f"{name}.so").unlink(missing_ok=True)
            shutil.rmtree(folder)
