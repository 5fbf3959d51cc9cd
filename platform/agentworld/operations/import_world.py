"""Pins weights from elsewhere as a simulator, without training."""

from importlib.util import find_spec
from pathlib import Path

from agentworld.engine.adapter import adapter_arguments
from agentworld.errors import InputError
from agentworld.operations.pinning import pin_model, pinned_manifest, with_world
from agentworld.recipes import Recipe
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.progress import OnProgress
from agentworld.storage.causal_lm import check_complete, with_generation_defaults
from agentworld.storage.limited import ask
from agentworld.storage.model_folder import check_safe
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore


def import_world(
    recipe: Recipe, store: Path, model: Path, on_progress: OnProgress
) -> PinnedSimulator:
    """A simulator of a folder with a causal LM; the model's generation settings apply unless the
    recipe sets them. Raises InputError for a folder that cannot be served, before the large files
    are read.
    """
    check_safe(model)
    check_complete(model)
    adapter_arguments(recipe.engine.kind, model)
    sampling = with_generation_defaults(recipe.simulate.sampling, model)
    recipe = with_world(recipe, sampling=sampling)
    pinned_manifest(ArtifactManifest(files={}), model, recipe)
    _check_loadable(model)
    return pin_model(SimulatorStore(store).import_model(model, on_progress), model, recipe, store)


def _check_loadable(model: Path) -> None:
    """Raises InputError if the chat template or the weights cannot be used."""
    if find_spec("transformers") is None:
        raise ModuleNotFoundError(name="transformers")
    too_much = (
        f"{model} has a chat template, a tokenizer or a config.json that takes too much time or"
        " memory; correct it"
    )
    if problem := ask("agentworld.train.trial", str(model.resolve()), too_much):
        raise InputError(problem)
