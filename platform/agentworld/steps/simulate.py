"""Step 8: a version of the world model becomes a pinned simulator that has answered once."""

import asyncio
from pathlib import Path

from agentworld.client.simulator import SimulatorClient
from agentworld.errors import InputError, SimulatorError
from agentworld.lineage.base import VersionRef
from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.progress import Tick
from agentworld.records.run import EpisodeOpening, RunOpening
from agentworld.records.simulator import SimulatorManifest
from agentworld.simulate.manifest import pin
from agentworld.steps.addresses import open_registry
from agentworld.steps.base import run_step
from agentworld.steps.code import lock_digest
from agentworld.steps.folders import MANIFEST, VERSION, context_tokens_of, model_of
from agentworld.steps.serving import served

_NO_OBSERVATION = ("cut-off", "unparsable")


def simulate(recipe: str, store: str, version: str) -> str:
    """The folder of the simulator, from the folder of a registered version."""
    return pin_version(recipe, store, VersionRef.read(Path(version) / VERSION))


def pin_version(recipe: str, store: str, ref: VersionRef) -> str:
    """The folder of the simulator: its manifest and the model's files."""
    chosen = load_recipe(recipe_path(recipe))
    registry = open_registry(Path(store))
    artifact = registry.world_model(ref).artifact

    def work(out: Path, _: Tick) -> Digest:
        registry.fetch(ref, model_of(out))
        files = ArtifactManifest.of(model_of(out))
        if files.digest != artifact:
            raise InputError(f"the files of {ref} are not those that were registered; restore them")
        manifest = pin(
            files,
            chosen.simulate,
            chosen.engine,
            lock=lock_digest(),
            context_tokens=context_tokens_of(out),
        )
        manifest.write(out / MANIFEST)
        with served(out, chosen.engine, Path(store), out / "logs") as client:
            asyncio.run(_probe(client, manifest))
        return manifest.digest

    inputs = {"version": artifact, "lock": lock_digest()}
    parts = [chosen.simulate, chosen.engine]
    return str(run_step(Path(store), "simulate", parts, inputs, work))


async def _probe(client: SimulatorClient, manifest: SimulatorManifest) -> None:
    """One step; the client refuses an answer that carries another digest."""
    opening = RunOpening(agent="probe", starting_weights=manifest.artifact, purpose="evaluation")
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
