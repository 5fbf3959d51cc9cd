"""A version's origin in MLflow's form: the data sets and the model that its run read."""

from collections.abc import Sequence
from typing import NamedTuple

from mlflow.entities import Dataset, DatasetInput, InputTag, LoggedModelInput, Run

from agentworld.lineage.data_input import DataInput, data_inputs, is_manifest
from agentworld.records.checkpoint import Checkpoint

_READERS = "mlflow.data.context"


class Inputs(NamedTuple):
    """The inputs of a registration's run for `log_inputs`; repeating them changes nothing."""

    datasets: list[DatasetInput]
    models: list[LoggedModelInput]

    @classmethod
    def of(cls, stages: Sequence[Checkpoint], model: str | None = None) -> "Inputs":
        """The inputs for trainings, and for the id of a logged model, if there is one."""
        datasets = [dataset_input(data_input) for data_input in data_inputs(stages)]
        return cls(datasets, [LoggedModelInput(model)] if model else [])


def data_read(run: Run) -> tuple[DataInput, ...]:
    """The data sets among a run's current inputs."""
    return tuple(map(_data_input, run.inputs.dataset_inputs))


def models_read(run: Run) -> tuple[str, ...]:
    """The ids of the logged models among a run's inputs."""
    return tuple(sorted(model_input.model_id for model_input in run.inputs.model_inputs))


def dataset_input(data_input: DataInput, profile: str | None = None) -> DatasetInput:
    """Converts it to MLflow's form; MLflow keeps the first profile of a data set."""
    dataset = Dataset(
        data_input.name,
        data_input.shortened,
        data_input.source_type,
        data_input.source,
        profile=profile,
    )
    return DatasetInput(dataset, [InputTag(_READERS, data_input.readers)])


def _data_input(mlflow_input: DatasetInput) -> DataInput:
    dataset, tags = mlflow_input.dataset, {tag.key: tag.value for tag in mlflow_input.tags}
    profile = dataset.profile or ""
    unknown = "" if is_manifest(profile, dataset.name) else profile
    extra = [dataset.schema, unknown, *sorted(tags.keys() - {_READERS})]
    return DataInput(
        name=dataset.name,
        shortened=dataset.digest,
        source_type=dataset.source_type,
        source=dataset.source,
        readers=tags.get(_READERS, ""),
        extra=" ".join(name for name in extra if name),
    )
