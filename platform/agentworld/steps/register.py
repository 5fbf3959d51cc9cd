"""Registers the last checkpoint as a version of the world model."""

from pathlib import Path

from agentworld.lineage.base import WorldModel
from agentworld.operations.registering import register, register_data
from agentworld.operations.registry import open_registry, registry_digest
from agentworld.operations.statements import submit
from agentworld.records.base import Digest
from agentworld.records.progress import OnProgress
from agentworld.records.report import WorldModelReport
from agentworld.reports.metrics import registered_metrics_of
from agentworld.runner.folders import REPORT, VERSION, checkpoint_of, model_of
from agentworld.runner.task import Plan, Task
from agentworld.steps.stages import stage_folders


def plan(task: Task) -> Plan:
    """Writes the registered version."""
    folders = stage_folders(task)
    last = [*folders][-1]
    model = model_of(folders[last])
    stages = tuple(map(checkpoint_of, folders.values()))
    evaluation = WorldModelReport.read(task.folders["report"] / REPORT)
    metrics = registered_metrics_of(evaluation)
    world_model = WorldModel(stages=stages, report=evaluation.digest, metrics=metrics)

    def work(out: Path, _: OnProgress) -> Digest:
        registry = open_registry(task.store)
        register_data(stages, registry, task.store)
        name = _name_of(world_model)
        register(name, world_model, model, registry, task.store, out).write(out / VERSION)
        return world_model.artifact

    return Plan(
        work,
        inputs={"registry": registry_digest()},
        reads=[last],
        answer=lambda folder: submit(folder, task.store),
    )


def _name_of(world_model: WorldModel) -> str:
    """The default name, from the domains of its data: `agentworld-shell`."""
    return "-".join(["agentworld", *(world_model.domains or ["text"])])
