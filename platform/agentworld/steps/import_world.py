"""Weights from elsewhere become a simulator; nothing is trained."""

from pathlib import Path

from agentworld.engine.adapter import adapter_arguments
from agentworld.recipes import Recipe
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.progress import Tick
from agentworld.steps.pinning import frozen, pin_model, with_world
from agentworld.storage.causal_lm import check_complete, with_generation_defaults
from agentworld.storage.model_folder import check_safe
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore


def import_world(chosen: Recipe, store: Path, model: Path, tick: Tick) -> PinnedSimulator:
    """A simulator of a folder with a causal LM, drawn as its maker says where the recipe does not.

    Raises InputError for a folder that cannot be served, before many gigabytes are read.
    """
    from agentworld.train.chat_template import check_renders

    check_safe(model)
    check_complete(model)
    adapter_arguments(chosen.engine.kind, model)
    sampling = with_generation_defaults(chosen.simulate.sampling, model)
    chosen = with_world(chosen, sampling=sampling)
    frozen(ArtifactManifest(files={}), model, chosen)
    check_renders(model)
    return pin_model(SimulatorStore(store).take_in(model, tick), model, chosen, store)
