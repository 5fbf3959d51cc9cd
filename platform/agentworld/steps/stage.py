"""What a stage of training is made of, so that its folder is known before anything is trained."""

from pathlib import Path

from agentworld.recipes import Recipe, load_recipe, recipe_path
from agentworld.records.base import Digest, Record
from agentworld.steps.base import folder_of, output_of

STAGES = ("cpt", "sft", "rl")
"""The steps that can be trained by many processes."""


def parts_of(stage: str, recipe: Recipe) -> list[Record]:
    """What of a recipe a stage's result depends on."""
    parts: dict[str, list[Record]] = {
        "cpt": [recipe.model, recipe.cpt],
        "sft": [recipe.model, recipe.sft],
        "rl": [recipe.rl],
    }
    return parts[stage]


def inputs_of(data: str, parent: str = "") -> dict[str, Digest]:
    """What the inputs' folders made; raises InputError where one is not finished."""
    parents = {"parent": output_of(parent)} if parent else {}
    return {"data": output_of(data), **parents}


def stage_folder(stage: str, recipe: str, store: str, data: str, parent: str = "") -> Path:
    """The folder that the stage's step fills with these arguments, finished or not."""
    parts = parts_of(stage, load_recipe(recipe_path(recipe)))
    return folder_of(Path(store), stage, parts, inputs_of(data, parent))
