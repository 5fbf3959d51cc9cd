"""LoRA weights in a model's folder `adapter`, in PEFT's form; the model always answers with them.

The adapter's files are part of the artifact, so a simulator's digest covers them.
"""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentworld.engine.base import EngineKind
from agentworld.errors import InputError
from agentworld.records.base import first_problem
from agentworld.records.file import input_errors, read_regular

ADAPTER = "adapter"
"""The adapter's folder, and the model name under which an engine serves it."""

_CONFIG = "adapter_config.json"
_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


class _Adapter(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    rank: int = Field(alias="r", gt=0, le=_RANKS[-1])


def has_adapter(model: Path) -> bool:
    """Whether a model's folder has an adapter."""
    return (model / ADAPTER / _CONFIG).is_file()


def adapter_arguments(kind: EngineKind, model: Path, name: str = ADAPTER) -> tuple[str, ...]:
    """The engine's arguments that load the adapter under a name; none for an engine that merges it.

    Raises InputError for an adapter without a rank.
    """
    if not has_adapter(model):
        return ()
    rank = next(limit for limit in _RANKS if limit >= _rank(model / ADAPTER / _CONFIG))
    if kind != "vllm":
        return ()
    module = f"{name}={model / ADAPTER}"
    return ("--enable-lora", "--max-lora-rank", str(rank), "--lora-modules", module)


def _rank(path: Path) -> int:
    try:
        with input_errors(path):
            data = read_regular(path)
        return _Adapter.model_validate_json(data).rank
    except ValidationError as error:
        raise InputError(f"{path} cannot be used: {first_problem(error)}; correct it") from error
