"""What a stage of training is made of, so that its folder is known before anything is trained.

A folder that a recipe names counts by its content and never by where it lies.
"""

from collections.abc import Mapping
from pathlib import Path

from agentworld.errors import InputError
from agentworld.recipes import Recipe, load_recipe, recipe_path
from agentworld.records.base import Digest, Record
from agentworld.records.checkpoint import ArtifactManifest, Checkpoint
from agentworld.runner.step import folder_of, output_of
from agentworld.storage.pools import read_dataset

STAGES = ("cpt", "sft", "rl")
"""The steps that can be trained by many processes."""


def parts_of(stage: str, recipe: Recipe) -> list[Record]:
    """What of a recipe a stage's result depends on, but for the content of folders."""
    reward = recipe.rl.reward.model_copy(update={"embedding_model": None})
    parts: dict[str, list[Record]] = {
        "cpt": [recipe.cpt] if recipe.model.base else [recipe.model, recipe.cpt],
        "sft": [recipe.sft],
        "rl": [recipe.rl.model_copy(update={"reward": reward})],
    }
    return parts[stage]


def inputs_of(stage: str, recipe: Recipe, data: str, parent: str = "") -> dict[str, Digest]:
    """What the inputs' folders made, and what the folders hold that the recipe names.

    Raises InputError where one is not finished, or not there.
    """
    parents = {"parent": output_of(parent)} if parent else {}
    sources = {"cpt": ("base", recipe.model.base), "rl": ("reward_model", recipe.rl.reward.folder)}
    name, folder = sources.get(stage, ("", None))
    content = {name: ArtifactManifest.of(Path(folder)).digest} if folder else {}
    return {"data": output_of(data), **parents, **content}


def domains_of(data: str) -> list[str]:
    """The kinds of world in a data set, whose code shapes what is trained."""
    return list(read_dataset(Path(data)).domains)


def check_unchanged(checkpoint: Checkpoint, inputs: Mapping[str, Digest]) -> None:
    """Raises InputError where a folder that the recipe names is another one than before."""
    read = {"reward_model": checkpoint.reward_model, "base": next(iter(checkpoint.parents), None)}
    for name, digest in inputs.items():
        if read.get(name, digest) != digest:
            raise InputError(
                f"the folder of {name} was changed while {checkpoint.stage} read it; train again"
                " when nobody writes there"
            )


def stage_folder(stage: str, recipe: str, store: str, data: str, parent: str = "") -> Path:
    """The folder that the stage's step fills with these arguments, finished or not."""
    settings = load_recipe(recipe_path(recipe))
    inputs = inputs_of(stage, settings, data, parent)
    return folder_of(
        Path(store), stage, parts_of(stage, settings), inputs, domains=domains_of(data)
    )
