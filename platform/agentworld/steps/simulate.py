"""Pins a version of the world model as a simulator.

The simulator has answered once, unless its engine is in another image than this one.
"""

import asyncio
import shutil
from pathlib import Path

from agentworld.engine.programs import is_installed
from agentworld.errors import InputError
from agentworld.lineage.base import VersionRef, WorldModel
from agentworld.operations.installed import installed_engine
from agentworld.operations.pinning import pin_model
from agentworld.operations.probe import probe
from agentworld.operations.registry import open_registry
from agentworld.operations.serving import serve_client
from agentworld.operations.simulators import attach
from agentworld.records.base import Digest, digest_json
from agentworld.records.progress import OnProgress
from agentworld.records.report import WorldModelReport
from agentworld.runner.folders import REPORT, VERSION, model_of
from agentworld.runner.step import output_of
from agentworld.runner.task import Plan, Task
from agentworld.storage.receipts import step_that_made
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore


def plan(task: Task) -> Plan:
    """The result is the simulator's folder, in the store of simulators."""
    settings, store = task.recipe, task.store
    ref = _ref_of(task.texts["version"])
    registry = open_registry(store)
    world_model = registry.world_model(ref)
    simulators = SimulatorStore(store)

    def work(out: Path, on_progress: OnProgress) -> Digest:
        registry.fetch(ref, model_of(out))
        artifact = simulators.import_model(model_of(out), on_progress)
        if artifact.digest != world_model.artifact:
            raise InputError(f"the files of {ref} are not those that were registered; restore them")
        simulator = pin_model(artifact, model_of(out), settings, store, world_model.domains)
        shutil.rmtree(model_of(out))
        _attach_report(simulator, world_model, store)
        if is_installed(settings.engine.kind):  # otherwise the step deploy asks it
            with serve_client(simulator.folder, settings.engine, store, out / "logs") as client:
                asyncio.run(probe(client, artifact.digest))
        return simulator.digest

    current = digest_json(installed_engine(settings.engine.kind))
    inputs = {"version": world_model.artifact, "installed": current}
    return Plan(
        work,
        inputs,
        domains=settings.simulate.domains or world_model.domains,
        answer=lambda folder: simulators.find(output_of(str(folder))).folder,
    )


def _ref_of(version: str) -> VersionRef:
    """Parses NAME@VERSION, or reads the folder of the step that registered it."""
    path = Path(version) / VERSION
    return VersionRef.read(path) if path.is_file() else VersionRef.parse(version)


def _attach_report(simulator: PinnedSimulator, world_model: WorldModel, store: Path) -> None:
    """Attaches the evaluation with which the version was registered, if this store has it."""
    step = step_that_made(store, "evaluate", world_model.report)
    report = WorldModelReport.read(step.folder / REPORT) if step else None
    if report and world_model.artifact in report.subjects:
        attach(simulator, report, store)
