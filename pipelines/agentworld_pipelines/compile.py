"""The pipeline as YAML for a cluster."""

from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from kfp import compiler

from agentworld.errors import StoreError
from agentworld.records.base import write_whole
from agentworld_pipelines.components import IMAGE
from agentworld_pipelines.world_model import world_model


def compile_pipeline(out: Path, image: str = IMAGE) -> None:
    """Writes the pipeline with the image that the cluster pulls; raises StoreError."""
    try:
        write_whole(out, _with_image(image).encode())
    except OSError as error:
        raise StoreError(
            f"cannot write {out}: {error.strerror}; check the path, its owner and the free space"
        ) from error


def _with_image(image: str) -> str:
    with TemporaryDirectory() as folder:
        draft = Path(folder) / "pipeline.yaml"
        compiler.Compiler().compile(world_model, str(draft))
        pipeline = yaml.safe_load(draft.read_text())
    for executor in pipeline["deploymentSpec"]["executors"].values():
        executor["container"]["image"] = image
    return str(yaml.safe_dump(pipeline, sort_keys=True))
