"""Compiles a pipeline to YAML for a cluster."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from kfp import compiler
from kfp.dsl.base_component import BaseComponent

from agentworld.errors import InputError, StoreError
from agentworld.recipes import recipe_path
from agentworld.records.file import write_whole
from agentworld.storage.working_copy import is_bucket
from agentworld_pipelines.agent import agent
from agentworld_pipelines.nightly import nightly
from agentworld_pipelines.placement import Placement
from agentworld_pipelines.world_model import world_model

PIPELINES: dict[str, Callable[[Placement | None], BaseComponent]] = {
    "world_model": world_model,
    "agent": agent,
    "nightly": nightly,
}


def arguments_for(name: str, values: Mapping[str, str]) -> dict[str, str]:
    """The arguments of a run on a server; empty ones are left to the pipeline's defaults.

    Raises InputError for an unknown pipeline, for an unknown argument, and for a store or a recipe
    that its pods could not find.
    """
    _check_store(values["store"])
    _check_recipe(values["recipe"], values["store"])
    arguments = {argument: value for argument, value in values.items() if value}
    for argument in arguments:
        if argument not in _inputs(name):
            raise InputError(
                f"the pipeline {name} takes no {argument}; leave it out, or name another pipeline"
            )
    return arguments


def compile_pipeline(
    out: Path,
    name: str = "world_model",
    placement: Placement | None = None,
    image: str | None = None,
    stages: Sequence[str] = (),
) -> None:
    """Writes a pipeline with a cluster's placement, and with this image or the placement's.

    `stages` selects the training stages of a world model; empty is all. Raises InputError for an
    unknown pipeline, for repeated or unordered stages, and StoreError.
    """
    pipeline = _pipeline(name)
    if stages:
        if name != "world_model":
            raise InputError(
                f"the pipeline {name} trains no stages of a world model; leave them out"
            )
        pipeline = partial(world_model, stages=stages)
    effective_placement = placement or Placement()
    if image:
        effective_placement = effective_placement.model_copy(update={"image": image})
    with TemporaryDirectory() as folder:
        draft = Path(folder) / "pipeline.yaml"
        compiler.Compiler().compile(pipeline(effective_placement), str(draft))
        content = draft.read_bytes()
    try:
        write_whole(out, content)
    except OSError as error:
        raise StoreError(
            f"cannot write {out}: {error.strerror}; check the path, its owner and the free space"
        ) from error


def _check_store(store: str) -> None:
    if not (store.startswith("/") or is_bucket(store)):
        raise InputError(
            f"the store {store} is a folder of this machine; name the one that every pod of the"
            " cluster reaches, as /store, or a bucket's, as s3://bucket/store"
        )


def _check_recipe(recipe: str, store: str) -> None:
    if recipe.startswith(("/", f"{store.rstrip('/')}/")):
        return
    if is_bucket(recipe):
        raise InputError(f"the recipe {recipe} is not in the store {store}; put it there")
    if recipe.endswith((".yaml", ".yml")):
        raise InputError(
            f"the recipe {recipe} is a file of this machine; name a shipped one, or the whole path"
            " of a file that every pod of the cluster reaches, as /stores/recipes/my.yaml"
        )
    recipe_path(recipe)


@cache
def _inputs(name: str) -> frozenset[str]:
    return frozenset(_pipeline(name)(None).component_spec.inputs or ())


def _pipeline(name: str) -> Callable[[Placement | None], BaseComponent]:
    if name not in PIPELINES:
        raise InputError(f"there is no pipeline {name!r}; pipelines are {', '.join(PIPELINES)}")
    return PIPELINES[name]
