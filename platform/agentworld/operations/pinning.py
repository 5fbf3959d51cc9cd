"""Pins a model in the store as a simulator, as a recipe says."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from agentworld.engine.programs import is_installed
from agentworld.engine.server import serve
from agentworld.errors import InputError
from agentworld.operations.installed import container_engine_version, installed_engine
from agentworld.pinning.manifest import pin
from agentworld.pinning.seed_probe import prove_seeds
from agentworld.recipes import Recipe
from agentworld.recipes.serve import SimulateRecipe
from agentworld.records.base import first_problem
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.simulator import SimulatorManifest
from agentworld.runner.remote import keep
from agentworld.storage.causal_lm import context_tokens
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore


def pin_model(
    artifact: ArtifactManifest,
    model: Path,
    recipe: Recipe,
    store: Path,
    trained_on: Sequence[str] = (),
) -> PinnedSimulator:
    """A simulator of an imported model; raises InputError if seeds do not give equal answers."""
    manifest = pinned_manifest(artifact, model, recipe, trained_on)
    if manifest.sampling.seed_policy == "seeded":
        _prove_seeds(manifest, model, recipe, store)
    pinned = SimulatorStore(store).keep(manifest)
    keep(pinned.folder)
    return pinned


def pinned_manifest(
    artifact: ArtifactManifest, model: Path, recipe: Recipe, trained_on: Sequence[str] = ()
) -> SimulatorManifest:
    """The manifest of a model by a recipe; raises InputError if the model cannot be served."""
    current = installed_engine(recipe.engine.kind)
    return pin(
        artifact,
        recipe.simulate,
        recipe.engine,
        lock=current.lock,
        image=current.image,
        version=container_engine_version(recipe.engine.kind),
        context_tokens=recipe.simulate.context_tokens or context_tokens(model),
        trained_on=trained_on,
    )


def with_world(recipe: Recipe, **fields: object) -> Recipe:
    """The recipe with other fields of its simulator; raises InputError for an invalid value."""
    try:
        part = SimulateRecipe.model_validate({**dict(recipe.simulate), **fields})
    except ValidationError as error:
        raise InputError(f"a world cannot be pinned so: {first_problem(error)}") from error
    return recipe.model_copy(update={"simulate": part})


def _prove_seeds(manifest: SimulatorManifest, model: Path, recipe: Recipe, store: Path) -> None:
    """Probes the seeds with the engine and the hardware that will serve the model.

    Raises InputError if they do not give equal answers, or cannot be probed here.
    """
    if not is_installed(recipe.engine.kind):
        raise InputError(
            f"equal seeds have to be seen to give equal bytes, and {recipe.engine.kind} is not"
            " installed here; set simulate.sampling.seed_policy to refuse, or pin where it is"
        )
    with serve(
        model.resolve(),
        recipe.engine,
        sampling=manifest.sampling,
        context_tokens=manifest.context_tokens,
        log=store / "logs" / "seeds.log",
    ) as client:
        prove_seeds(manifest, client.connect, client.concurrency)
