"""What safetensors files say of themselves before the bytes of their tensors: names and shapes."""

import json
from math import prod
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter

from agentworld.errors import InputError
from agentworld.records.checkpoint import model_files

_LENGTH_BYTES = 8
_MOST_BYTES = 100_000_000  # as safetensors itself takes
_METADATA = "__metadata__"


class _Tensor(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    shape: tuple[int, ...]


_TENSORS = TypeAdapter(dict[str, _Tensor])


def num_parameters(folder: Path) -> int:
    """Of a model's weights; raises InputError for a folder without any, or with garbled ones."""
    files = [path for path in model_files(folder).values() if path.suffix == ".safetensors"]
    if not files:
        raise InputError(f"{folder} has no safetensors weights; name the folder of a whole model")
    return sum(prod(each.shape) for path in files for each in _tensors(path).values())


def _tensors(path: Path) -> dict[str, _Tensor]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        header = file.read(length) if length <= _MOST_BYTES else b""
    try:
        told = json.loads(header)
        told.pop(_METADATA, None)
        return _TENSORS.validate_python(told)
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path} is no safetensors file ({type(error).__name__}); restore it"
        ) from error
