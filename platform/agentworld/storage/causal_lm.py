"""Settings in the folder of a causal LM: its context length and its generation defaults.

The folder was checked before (`model_folder`), so its files are valid JSON.
"""

from pathlib import Path
from typing import Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agentworld.errors import InputError
from agentworld.records.base import first_problem
from agentworld.records.file import input_errors, read_regular
from agentworld.records.simulator import Sampling

_TEMPLATES = ("tokenizer_config.json", "chat_template.json")


class _ModelConfig(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Config(_ModelConfig):
    max_position_embeddings: int | None = None
    text_config: Self | None = None
    """Present in multimodal models."""


class _Generation(_ModelConfig):
    do_sample: bool = False
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None


class _Chat(_ModelConfig):
    chat_template: object = None


_AnySettings = TypeVar("_AnySettings", bound=_ModelConfig)


def check_complete(folder: Path) -> None:
    """Raises InputError for a folder without a config, weights, or a chat template.

    Also for an adapter among the weights, which engines treat differently.
    """
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} has no config.json; name the folder of a whole model")
    if not any(folder.glob("*.safetensors")):
        raise InputError(f"{folder} has no safetensors weights; name the folder of a whole model")
    if (folder / "adapter_config.json").exists():
        raise InputError(f"{folder} has an adapter among its weights; put it into {folder}/adapter")
    in_settings = (_read(_Chat, folder / name).chat_template for name in _TEMPLATES)
    if not (folder / "chat_template.jinja").is_file() and not any(in_settings):
        raise InputError(
            f"{folder} has no chat template; put the model's chat_template.jinja there"
        )


def context_tokens(folder: Path) -> int:
    """The context length in tokens, prompt and response together."""
    config = _read(_Config, folder / "config.json")
    inner = config.text_config.max_position_embeddings if config.text_config else None
    limit = config.max_position_embeddings or inner
    if limit is None:
        raise InputError(
            f"{folder / 'config.json'} does not state the context length in tokens; set"
            " simulate.context_tokens in the recipe"
        )
    return limit


def with_generation_defaults(sampling: Sampling, folder: Path) -> Sampling:
    """The recipe's sampling parameters; missing ones from the model's generation config, or else
    greedy.
    """
    defaults = _read(_Generation, folder / "generation_config.json")
    settings = defaults.model_dump(exclude={"do_sample"}, exclude_none=True)
    if not defaults.do_sample:
        settings = {}
    try:
        return Sampling.model_validate({**settings, **sampling.model_dump(exclude_unset=True)})
    except ValidationError as error:
        raise InputError(
            f"{folder / 'generation_config.json'} cannot be used: {first_problem(error)}"
        ) from error


def _read(kind: type[_AnySettings], path: Path) -> _AnySettings:
    """A file's settings; the defaults if it is missing."""
    if not path.is_file():
        return kind()
    try:
        with input_errors(path):
            data = read_regular(path)
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise InputError(f"{path} cannot be used: {first_problem(error)}; correct it") from error
