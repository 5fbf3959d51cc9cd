"""Reads and checks the headers of safetensors files.

An engine maps such a file into memory as its header says. This module compares the header with the
file, independent of the library that reads it later.
"""

import json
import os
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentworld.errors import InputError
from agentworld.records.base import first_problem
from agentworld.records.checkpoint import model_files
from agentworld.records.file import input_errors, open_regular

WEIGHTS = ".safetensors"

_LENGTH_BYTES = 8
_MOST_BYTES = 100_000_000  # safetensors' own limit
_METADATA = "__metadata__"
_MOST_DIMENSIONS = 64  # torch's own limit
_BITS = {
    **dict.fromkeys(("F4",), 4),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"), 8),
    **dict.fromkeys(("F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
    **dict.fromkeys(("I32", "U32", "F32"), 32),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
}
"""The size of a value in bits, by the name of its type."""

_Size = Annotated[int, Field(ge=0, lt=2**63, strict=True)]


class Tensor(BaseModel):
    """A header's entry for a tensor."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    dtype: str
    shape: tuple[_Size, ...] = Field(max_length=_MOST_DIMENSIONS)
    data_offsets: tuple[_Size, _Size]
    """The offsets of its first byte and after its last, relative to the header's end."""


def num_parameters(folder: Path) -> int:
    """The number of a model's parameters; raises InputError for a folder without weights, or with
    garbled ones.
    """
    files = [path for path in model_files(folder).values() if path.suffix == WEIGHTS]
    if not files:
        raise InputError(f"{folder} has no safetensors weights; name the folder of a whole model")
    return sum(prod(tensor.shape) for path in files for tensor in read_tensors(path).values())


def read_tensors(path: Path) -> dict[str, Tensor]:
    """A file's tensors by name; raises InputError if the file does not match its header."""
    with input_errors(path), open_regular(path) as file:
        num_bytes = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        header = file.read(length) if length <= _MOST_BYTES else b""
    try:
        entries = json.loads(header.decode(), object_pairs_hook=_reject_duplicates)
        entries.pop(_METADATA, None)
        # Checked singly: of a million invalid ones, the first is enough.
        tensors = {name: Tensor.model_validate(tensor) for name, tensor in entries.items()}
        _check_places(tensors, num_bytes - _LENGTH_BYTES - length)
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path} is not a safetensors file ({_reason(error)}); restore it"
        ) from error
    return tensors


def _reject_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """With two tensors of one name, another reader may take the other one."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("it has a duplicate key")
    return fields


def _check_places(tensors: Mapping[str, Tensor], num_bytes: int) -> None:
    """Raises ValueError if tensors overlap, leave a gap, or do not have the size of their
    shapes.
    """
    end = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: item[1].data_offsets):
        begin, after = tensor.data_offsets
        bits = _BITS.get(tensor.dtype)
        if bits is None:
            raise ValueError(f"{name[:80]!r} has the unknown type {tensor.dtype[:20]!r}")
        if begin != end or (after - begin) * 8 != prod(tensor.shape) * bits:
            raise ValueError(f"the offsets of {name[:80]!r} do not match its shape or order")
        end = after
    if end != num_bytes:
        raise ValueError(f"it has {num_bytes} bytes of tensors instead of {end}")


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return first_problem(error)
    return str(error) if isinstance(error, ValueError) else type(error).__name__
