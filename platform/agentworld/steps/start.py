"""The model from which a stage's training starts."""

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
"""Loaded by name: the digest of the fetched files is an input of the step, so a change of the code
that fetches them repeats no training.
"""

_LEAST_RATE = 1e-4
"""With a smaller rate, a model with random weights learns nothing in the steps of a recipe."""


class Start(NamedTuple):
    """The model that a training starts from, or none."""

    parent: Callable[[], Parent] | None
    """The model, whose files are verified if they were fetched; null for a new model."""
    inputs: Mapping[str, Digest]
    """The step's inputs in addition to its parent."""
    from_scratch: bool = False
    """Whether training began with random weights, here or in an earlier training.

    False for a base from elsewhere, because no record says how its training began.
    """


def start_of(task: Task) -> Start:
    """The parent stage, if given; otherwise the recipe's base; otherwise no model."""
    if "parent" in task.folders:
        parent = parent_of(task.folders["parent"])
        return Start(lambda: parent, {}, parent.from_scratch)
    model = task.recipe.model
    if model.base is None:
        return Start(None, {}, from_scratch=True)
    find: Callable[[str, Path], Base] = import_module(_BASES).find_base
    base, template = find(model.base, task.store), _template_of(model)
    # The base's record is not an input: some processes of a training may not reach the registry.
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
    """Raises InputError if a learning rate of the recipe is too small for a model from scratch."""
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
            f"model.chat_template is neither a template nor a readable file: {text!r}; give a"
            " template's text, or the path of one"
        ) from error
