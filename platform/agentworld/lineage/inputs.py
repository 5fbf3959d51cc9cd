"""A version's origin in MLflow's own words: the data sets and the model that its run read."""

import json
from typing import NamedTuple

from mlflow.entities import Dataset, DatasetInput, InputTag, LoggedModelInput

from agentworld.records.base import Digest
from agentworld.records.checkpoint import Checkpoint, Stage

_DIGEST_CHARACTERS = 36
"""The most that MLflow takes; the name has all of them."""


class Inputs(NamedTuple):
    """What a registration's run read, as `log_inputs` takes it: told again it is kept once."""

    datasets: list[DatasetInput]
    models: list[LoggedModelInput]


def dataset_inputs(stages: tuple[Checkpoint, ...]) -> list[DatasetInput]:
    """Every data set once, with the stages that read it."""
    readers: dict[Digest, list[Stage]] = {}
    for made in stages:
        if made.data:
            readers.setdefault(made.data, []).append(made.stage)
    return [_dataset_input(data, stages) for data, stages in readers.items()]


def model_inputs(model: str | None) -> list[LoggedModelInput]:
    """Of the id of a logged model, where there is one."""
    return [LoggedModelInput(model)] if model else []


def _dataset_input(data: Digest, stages: list[Stage]) -> DatasetInput:
    shortened = data.removeprefix("sha256:")[:_DIGEST_CHARACTERS]
    dataset = Dataset(data, shortened, "agentworld", json.dumps({"digest": data}))
    return DatasetInput(dataset, [InputTag("mlflow.data.context", " ".join(stages))])
