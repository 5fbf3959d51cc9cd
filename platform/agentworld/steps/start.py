"""Where the training of a stage starts."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentworld.errors import InputError
from agentworld.recipes.train import ModelRecipe, NextTokenRecipe
from agentworld.records.base import Digest, digest_bytes
from agentworld.runner.folders import model_of
from agentworld.runner.task import Task
from agentworld.train.parent import Parent

if TYPE_CHECKING:
    from agentworld.operations.base_model import Base

_BASES = "agentworld.operations.base_model"
"""Loaded by its name: the digest of what was fetched is an input of the step, so that the code that
fetches is none of the step's, and a change of it trains nothing again."""


class Start(NamedTuple):
    """A model, or none."""

    parent: Callable[[], Parent] | None
    """The model, whose files are verified where it was fetched; null for a new model."""
    inputs: Mapping[str, Digest]
    """What the step reads of it beside its parent."""


def start_of(task: Task) -> Start:
    """The parent stage where one is given, else the base that the recipe names, else nothing."""
    if "parent" in task.folders:
        parent = Parent(model_of(task.folders["parent"]))
        return Start(lambda: parent, {})
    model = task.recipe.model
    if model.base is None:
        return Start(None, {})
    find: Callable[[str, Path], Base] = import_module(_BASES).find_base
    base, template = find(model.base, task.store), _template_of(model)
    inputs = {"base": base.digest}
    if template is not None:
        inputs["chat_template"] = digest_bytes(template.encode())
    return Start(lambda: Parent(base.folder(), base.address, template), inputs)


def check_rates(start: Start, recipe: NextTokenRecipe) -> None:
    """Raises InputError for a new model that would learn nothing, by the rates of a trained one."""
    if start.parent is None and max(recipe.learning_rate, recipe.muon_learning_rate or 0) < 1e-4:
        raise InputError(
            f"{recipe.stage} makes a new model here, which learns nothing by a learning_rate of"
            f" {recipe.learning_rate:g}; name a model to start from as model.base, or take the"
            " rates of the recipe demo"
        )


def _template_of(model: ModelRecipe) -> str | None:
    """The text of the recipe's chat template, or of the file that it names."""
    text = model.chat_template
    if text is None or "{" in text:
        return text
    try:
        return Path(text).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"model.chat_template is no template, and no file that can be read: {text!r}; give a"
            " template's text, or the path of one"
        ) from error
