"""The pipeline as YAML for a cluster."""

from pathlib import Path

import yaml
from kfp import compiler

from agentworld_pipelines.components import IMAGE
from agentworld_pipelines.world_model import world_model


def compile_pipeline(out: Path, image: str = IMAGE) -> None:
    """Writes the pipeline with the image that the cluster pulls."""
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(f".{out.name}.yaml")  # the compiler insists on the ending
    compiler.Compiler().compile(world_model, str(draft))
    pipeline = yaml.safe_load(draft.read_text())
    draft.unlink()
    for executor in pipeline["deploymentSpec"]["executors"].values():
        executor["container"]["image"] = image
    out.write_text(yaml.safe_dump(pipeline, sort_keys=True))
