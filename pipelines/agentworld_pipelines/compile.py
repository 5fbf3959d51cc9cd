"""A pipeline as YAML for a cluster."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from kfp import compiler
from kfp.dsl.base_component import BaseComponent

from agentworld.errors import InputError, StoreError
from agentworld.records.base import write_whole
from agentworld_pipelines.agent import agent
from agentworld_pipelines.placement import Placement
from agentworld_pipelines.world_model import world_model

PIPELINES: dict[str, Callable[[Placement | None], BaseComponent]] = {
    "world_model": world_model,
    "agent": agent,
}


def compile_pipeline(
    out: Path,
    name: str = "world_model",
    placement: Placement | None = None,
    image: str | None = None,
) -> None:
    """Writes a pipeline, placed on a cluster, with this image or the placement's.

    Raises InputError for a name that no pipeline has, and StoreError.
    """
    if name not in PIPELINES:
        raise InputError(f"there is no pipeline {name!r}; pipelines are {', '.join(PIPELINES)}")
    where = placement or Placement()
    if image:
        where = where.model_copy(update={"image": image})
    with TemporaryDirectory() as folder:
        draft = Path(folder) / "pipeline.yaml"
        compiler.Compiler().compile(PIPELINES[name](where), str(draft))
        made = draft.read_bytes()
    try:
        write_whole(out, made)
    except OSError as error:
        raise StoreError(
            f"cannot write {out}: {error.strerror}; check the path, its owner and the free space"
        ) from error
