"""Where the training of a stage starts."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentworld.errors import InputError
from agentworld.recipes.train import GroupRlRecipe, ModelRecipe, NextTokenRecipe
from agentworld.records.base import Digest, digest_bytes
from agentworld.runner.folders import checkpoint_of, model_of
from agentworld.runner.task import Task
from agentworld.train.parent import Parent

if TYPE_CHECKING:
    from agentworld.operations.base_model import Base

_BASES = "agentworld.operations.base_model"
"""Loaded by its name: the digest of what was fetched is an input of the step, so that the code that
fetches is none of the step's, and a change of it trains nothing again."""

_LEAST_RATE = 1e-4
"""By less a model that began with random weights learns nothing in the steps of a recipe."""


class Start(NamedTuple):
    """A model, or none."""

    parent: Callable[[], Parent] | None
    """The model, whose files are verified where it was fetched; null for a new model."""
    inputs: Mapping[str, Digest]
    """What the step reads of it beside its parent."""
    from_scratch: bool = False
    """Whether training begins with random weights, here or in a training before.

    False for a base from elsewhere: no record says how its training began.
    """


def start_of(task: Task) -> Start:
    """The parent stage where one is given, else the base that the recipe names, else nothing."""
    if "parent" in task.folders:
        parent = parent_of(task.folders["parent"])
        return Start(lambda: parent, {}, parent.from_scratch)
    model = task.recipe.model
    if model.base is None:
        return Start(None, {}, from_scratch=True)
    find: Callable[[str, Path], Base] = import_module(_BASES).find_base
    base, template = find(model.base, task.store), _template_of(model)
    # What made the base is no input: processes that train together may not all reach the registry.
    inputs = {"base": base.digest}
    if template is not None:
        inputs["chat_template"] = digest_bytes(template.encode())
    from_scratch = base.checkpoint is not None and base.checkpoint.from_scratch

    def parent_of_base() -> Parent:
        return Parent(base.folder(), base.address, template, base.checkpoint)

    return Start(parent_of_base, inputs, from_scratch)


def parent_of(folder: Path) -> Parent:
    """The model of a finished stage."""
    return Parent(model_of(folder), checkpoint=checkpoint_of(folder))


def check_rates(part: str, recipe: NextTokenRecipe | GroupRlRecipe, *, from_scratch: bool) -> None:
    """Raises InputError where a part of the recipe would teach a model from scratch nothing."""
    muon = recipe.muon_learning_rate if isinstance(recipe, NextTokenRecipe) else None
    if from_scratch and max(recipe.learning_rate, muon or 0) < _LEAST_RATE:
        raise InputError(
            f"{part}.learning_rate {recipe.learning_rate:g} is for a pretrained model and teaches"
            " nothing to one that starts from scratch; take the rates of the recipe demo, or name a"
            " pretrained model as model.base"
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
