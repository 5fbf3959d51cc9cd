"""Continual pre-training on every kind of turn."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from agentworld.recipes.train import CptRecipe
from agentworld.records.base import Digest
from agentworld.records.corpus import Corpus
from agentworld.records.garbled import redact
from agentworld.records.progress import OnProgress
from agentworld.runner.code import module_digest
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.task import Plan, Task
from agentworld.steps.content import check_unchanged
from agentworld.steps.start import check_rates, start_of
from agentworld.steps.training_run import training_run
from agentworld.storage.pools import read_dataset

_CORPORA = "agentworld.data.corpora"
"""Loaded by name: the code that reads corpora is an input of the step only if it has corpora."""


def plan(task: Task) -> Plan:
    """Trains a new model, or the base that the recipe names."""
    recipe, data, start = task.recipe, task.folders["data"], start_of(task)
    check_rates("cpt", recipe.cpt, from_scratch=start.from_scratch)
    corpora = _open_corpora(recipe.cpt)
    inputs = {**start.inputs, **_inputs_of(corpora)}
    stage = _without_secrets(recipe.cpt)

    def work(out: Path, on_progress: OnProgress) -> Digest:
        with frozen_gc():
            from agentworld.train import next_token
        parent = start.parent() if start.parent else None
        with training_run(task, out, inputs) as on_metrics:
            checkpoint = next_token.run(
                stage,
                recipe.model,
                data,
                parent,
                out,
                on_progress,
                on_metrics,
                corpora=corpora,
            )
        check_unchanged(checkpoint, start.inputs)
        return checkpoint.artifact

    return Plan(work, inputs, domains=read_dataset(data).domains)


def _open_corpora(recipe: CptRecipe) -> dict[str, Corpus]:
    """Raises InputError if a corpus cannot be read."""
    if not recipe.corpora:
        return {}
    corpora: dict[str, Corpus] = import_module(_CORPORA).open_corpora(recipe.corpora)
    return corpora


def _inputs_of(corpora: Mapping[str, Corpus]) -> dict[str, Digest]:
    """The digest of each corpus, and of the code that reads them."""
    contents = {f"corpus {name}": corpus.content for name, corpus in corpora.items()}
    return {"corpora": module_digest(_CORPORA), **contents} if contents else {}


def _without_secrets(recipe: CptRecipe) -> CptRecipe:
    """The recipe in a checkpoint: an address may contain a password or a signature."""
    corpora = {
        name: corpus.model_copy(update={"address": redact(corpus.address)})
        for name, corpus in recipe.corpora.items()
    }
    return recipe.model_copy(update={"corpora": corpora})
