"""Saves the result of a stage: the model's folder, and the record of how it was trained."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from agentworld.errors import InputError
from agentworld.records.base import Digest
from agentworld.records.checkpoint import ArtifactManifest, Checkpoint, Stage
from agentworld.records.corpus import CorpusUse
from agentworld.records.dataset import DataSet
from agentworld.train.distributed import on_rank_zero
from agentworld.train.model import LanguageModel
from agentworld.train.parent import Parent

MODEL = "model"
RECORD = "checkpoint.json"


def save_checkpoint(
    language_model: LanguageModel,
    out: Path,
    *,
    stage: Stage,
    recipe: BaseModel,
    parent: Parent | None = None,
    dataset: DataSet | None = None,
    traces: Digest | None = None,
    corpora: Mapping[str, CorpusUse] = {},
    simulator: str | None = None,
    reward_model: str | None = None,
    metrics: dict[str, float],
) -> Checkpoint:
    """Writes `out/model` and then `out/checkpoint.json`.

    All processes call it, because each may have a part of the weights. Raises InputError for a
    training that diverged.
    """
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise InputError(f"the training {stage} diverged ({name} is {value}); lower its rates")

    language_model.save(out / MODEL)

    def save() -> Checkpoint:
        checkpoint = Checkpoint(
            stage=stage,
            artifact=_digest_of(out / MODEL),
            num_parameters=language_model.num_parameters,
            recipe=json.loads(recipe.model_dump_json()),
            parents=(_digest_of(parent.folder),) if parent else (),
            base=parent.address if parent else None,
            from_scratch=parent is None or parent.from_scratch,
            data=dataset.digest if dataset else None,
            traces=traces,
            corpora=dict(corpora),
            domains=_domains(parent, dataset),
            simulator=simulator,
            reward_model=_digest_of(Path(reward_model)) if reward_model else None,
            metrics=metrics,
        )
        checkpoint.write(out / RECORD)
        return checkpoint

    return on_rank_zero(save)


def _domains(parent: Parent | None, dataset: DataSet | None) -> tuple[str, ...]:
    """The domains of the data, and of the parent if this project trained it."""
    names = set(dataset.domains) if dataset else set()
    if parent and parent.checkpoint:
        names |= set(parent.checkpoint.domains)
    return tuple(sorted(names))


def _digest_of(folder: Path) -> Digest:
    return ArtifactManifest.of(folder).digest
