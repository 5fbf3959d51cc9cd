"""LoRA weights in a model's folder `adapter`, as PEFT writes them: both answer, or nothing does.

Their files are a part of the artifact, so that a simulator's digest covers them.
"""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentworld.engine.base import EngineKind
from agentworld.errors import InputError
from agentworld.records.base import first_problem
from agentworld.records.file import input_errors, read_regular

ADAPTER = "adapter"
"""Their folder, and the name that an engine answers under with them and not without."""

_CONFIG = "adapter_config.json"
_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


class _Adapter(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    rank: int = Field(alias="r", gt=0, le=_RANKS[-1])


def has_adapter(model: Path) -> bool:
    """Whether there are such weights in a model's folder."""
    return (model / ADAPTER / _CONFIG).is_file()


def adapter_arguments(kind: EngineKind, model: Path, name: str = ADAPTER) -> tuple[str, ...]:
    """What an engine is started with to use them under a name; nothing for one that merges them.

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
