"""Plans stages of a recipe by the config.json of its base, without its weights."""

from collections.abc import Iterable
from pathlib import Path

from agentworld.errors import InputError
from agentworld.recipes import Recipe, load_recipe, recipe_path
from agentworld.records.training_plan import StagePlan
from agentworld.train.plan.architecture import config_of_folder, config_of_new
from agentworld.train.plan.planning import Planner, Terms


def plan_training(
    name: str, stages: Iterable[str], base: Path | None, terms: Terms
) -> list[StagePlan]:
    """Plans these stages; `base` is the folder of a config.json instead of the recipe's base.

    Raises InputError for the first stage that does not fit.
    """
    recipe = load_recipe(recipe_path(name))
    planner = _planner(recipe, base)
    return [planner.plan(getattr(recipe, stage), terms) for stage in stages]


def _planner(recipe: Recipe, base: Path | None) -> Planner:
    address = recipe.model.base
    if base is None and address is None:
        return Planner(config_of_new(recipe.model))
    folder = base or Path(address or "")
    if base is None and not folder.is_dir():
        raise InputError(
            f"{address} is not a folder here; give a folder with its config.json as --model"
        )
    return Planner(config_of_folder(folder))
