"""Checks a folder of external weights before any library loads it.

Weights are complete safetensors files without code, and no file links out of the folder, because
its digest would not cover the target. Chat templates are compiled here and not rendered:
transformers, also for TRL and vLLM, renders them in a sandbox of Jinja.
"""

import json
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from agentworld.errors import InputError
from agentworld.records.base import first_problem
from agentworld.records.checkpoint import model_files
from agentworld.records.file import input_errors, read_regular
from agentworld.storage.templates import template_problem
from agentworld.storage.weights import WEIGHTS, read_tensors

_TEMPLATE = ".jinja"
_VOCABULARIES = {".model", ".tiktoken"}
_TEXTS = {"", ".csv", ".json", ".jsonl", ".md", ".rst", ".toml", ".txt", ".yaml", ".yml"}
_PICTURES = {".gif", ".jpeg", ".jpg", ".pdf", ".png", ".svg", ".webp"}
_SUFFIXES = {WEIGHTS, _TEMPLATE} | _VOCABULARIES | _TEXTS | _PICTURES

_SETTINGS = ("config.json", "chat_template.json", ".index.json")
_NAMES_CODE = {"auto_map", "custom_pipelines"}


def check_safe(folder: Path) -> None:
    """Raises InputError naming the first file that could run code, leads out of the folder, or has
    the name but not the content of weights.
    """
    for path in model_files(folder).values():
        _check_kind(path)
        if path.suffix.lower() == WEIGHTS:
            read_tensors(path)
        if path.name.endswith(_SETTINGS):
            _check_settings(path)
        if path.suffix == _TEMPLATE:
            _check_template(path, _read(path))


def _check_kind(path: Path) -> None:
    if path.is_symlink():
        raise InputError(f"{path} is a link; replace it by the file itself")
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError(
            f"{path} may contain code; a model's folder has safetensors weights, JSON, templates,"
            " texts and pictures, so convert or remove it"
        )


class _TemplateEntry(BaseModel):
    name: str
    template: str


class _ConfigFile(BaseModel):
    """The checked fields of a JSON file of settings."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    chat_template: str | dict[str, str] | tuple[_TemplateEntry, ...] | None = None
    weight_map: dict[str, str] = {}
    """The file of each tensor."""

    @property
    def templates(self) -> list[str]:
        """One template, or several by their names."""
        if isinstance(self.chat_template, str):
            return [self.chat_template]
        if isinstance(self.chat_template, dict):
            return list(self.chat_template.values())
        return [entry.template for entry in self.chat_template or ()]


def _check_settings(path: Path) -> None:
    settings = _read_settings(path)
    for template in settings.templates:
        _check_template(path, template)
    for file in settings.weight_map.values():
        is_beside = Path(file).name == file and path.with_name(file).is_file()
        if not is_beside or not file.endswith(WEIGHTS):
            raise InputError(
                f"{path} names {file!r}, which is not a safetensors file beside it; correct the"
                " index"
            )


def _read_settings(path: Path) -> _ConfigFile:
    try:
        fields = json.loads(_read(path), object_pairs_hook=partial(_without_code, path))
        return _ConfigFile.model_validate(fields)
    except ValidationError as error:
        raise InputError(f"{path} cannot be used: {first_problem(error)}; correct it") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({error}); restore it") from error


def _without_code(path: Path, pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Checks objects at every depth: some loaders read nested settings."""
    for key, value in pairs:
        if key in _NAMES_CODE and value:
            raise InputError(f"{path} names code to be run ({key}); remove it, none is loaded")
    return dict(pairs)


def _check_template(path: Path, template: str) -> None:
    if problem := template_problem(template):
        raise InputError(f"{path} has an invalid template ({problem}); correct it")


def _read(path: Path) -> str:
    try:
        with input_errors(path):
            return read_regular(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error}); restore it") from error
