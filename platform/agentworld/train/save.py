"""The end of every stage: a model's folder, and the record that says how it came to be."""

import json
import shutil
from pathlib import Path

from pydantic import BaseModel

from agentworld.records.checkpoint import ArtifactManifest, Checkpoint, Stage
from agentworld.train.model import LanguageModel
from agentworld.train.resume import CHECKPOINTS
from agentworld.train.together import from_first

MODEL = "model"
RECORD = "checkpoint.json"


def save_checkpoint(
    language_model: LanguageModel,
    out: Path,
    *,
    stage: Stage,
    recipe: BaseModel,
    parent: Path | None = None,
    data: str | None = None,
    simulator: str | None = None,
    metrics: dict[str, float],
) -> Checkpoint:
    """Writes `out/model` and then `out/checkpoint.json`; what a killed run needed is removed."""

    def save() -> Checkpoint:
        language_model.save(out / MODEL)
        checkpoint = Checkpoint(
            stage=stage,
            artifact=ArtifactManifest.of(out / MODEL).digest,
            num_parameters=language_model.num_parameters,
            recipe=json.loads(recipe.model_dump_json()),
            parents=(ArtifactManifest.of(parent).digest,) if parent else (),
            data=data,
            simulator=simulator,
            metrics=metrics,
        )
        checkpoint.write(out / RECORD)
        shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
        return checkpoint

    return from_first(save)
