"""Step 9: a version of the world model becomes a pinned simulator that has answered once."""

import asyncio
import shutil
from pathlib import Path

from agentworld.audit.receipts import step_that_made
from agentworld.client.simulator import SimulatorClient
from agentworld.errors import InputError, SimulatorError
from agentworld.lineage.base import VersionRef, WorldModel
from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest, digest_json
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.episode import EpisodeOpening
from agentworld.records.progress import Tick
from agentworld.records.report import WorldModelReport
from agentworld.records.run import RunOpening
from agentworld.steps.addresses import open_registry
from agentworld.steps.base import output_of, run_step
from agentworld.steps.folders import REPORT, VERSION, model_of
from agentworld.steps.installed import installed
from agentworld.steps.pinning import pin_model
from agentworld.steps.serving import served
from agentworld.steps.simulators import attach
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore

_NO_OBSERVATION = ("cut-off", "unparsable")


def simulate(recipe: str, store: str, version: str) -> str:
    """The folder of the simulator, from the folder of a registered version."""
    return pin_version(recipe, store, VersionRef.read(Path(version) / VERSION))


def pin_version(recipe: str, store: str, ref: VersionRef) -> str:
    """The folder of the simulator, in the store of simulators."""
    chosen = load_recipe(recipe_path(recipe))
    registry = open_registry(Path(store))
    registered = registry.world_model(ref)
    simulators = SimulatorStore(Path(store))

    def work(out: Path, tick: Tick) -> Digest:
        registry.fetch(ref, model_of(out))
        artifact = simulators.take_in(model_of(out), tick)
        if artifact.digest != registered.artifact:
            raise InputError(f"the files of {ref} are not those that were registered; restore them")
        simulator = pin_model(artifact, model_of(out), chosen, Path(store))
        shutil.rmtree(model_of(out))
        _attach_report(simulator, registered, Path(store))
        with served(simulator.folder, chosen.engine, Path(store), out / "logs") as client:
            asyncio.run(_probe(client, artifact))
        return simulator.digest

    here = digest_json(installed(chosen.engine.kind))
    inputs = {"version": registered.artifact, "installed": here}
    parts = [chosen.simulate, chosen.engine]
    step = run_step(Path(store), "simulate", parts, inputs, work)
    return str(simulators.find(output_of(str(step))).folder)


def _attach_report(simulator: PinnedSimulator, registered: WorldModel, store: Path) -> None:
    """The evaluation that the version was registered with, where this store has it."""
    step = step_that_made(store, "evaluate", registered.report)
    report = WorldModelReport.read(step.folder / REPORT) if step else None
    if report and registered.artifact in report.subjects:
        attach(simulator, report, store)


async def _probe(client: SimulatorClient, artifact: ArtifactManifest) -> None:
    """One step; the client refuses an answer that carries another digest."""
    opening = RunOpening(agent="probe", starting_weights=artifact.digest, purpose="evaluation")
    run = await client.open_run(opening)
    episode = await client.begin(EpisodeOpening(run=run.id))
    try:
        await client.step(episode.episode, "pwd")
    except SimulatorError as error:
        # It answered with its digest; that a poor model said no observation is the model's.
        if error.kind not in _NO_OBSERVATION:
            raise
    finally:
        await client.close()
