"""Compiles the layers of the demo's model, by training a new one on its first batch.

A compiler that does not work is found at set-up, and what torch compiled it keeps for the demo:
what depends on the sizes of a layer, and what on the processor alone. The key under which torch
keeps it depends on the first batch's shape and on the order of imports: `next_token` comes first
here, as it does in the demo.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from agentworld.domains.base import domain_of
from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.progress import ignore_progress
from agentworld.train.next_token import new_tiny_model, warm_up_rows
from agentworld.train.trainer import train_rows

_ONE_BATCH = {"epochs": 1e-9}

recipe = load_recipe(recipe_path("demo"))
tiny_model = domain_of(recipe.collect.domain).tiny
texts = tiny_model.warm_up(recipe.model.num_warmup_texts, recipe.model.seed)
model = new_tiny_model(recipe.model, [tiny_model], texts)
with TemporaryDirectory() as scratch:
    one_batch = recipe.cpt.model_copy(update=_ONE_BATCH)
    rows = warm_up_rows(model, recipe.model, [tiny_model])
    train_rows(model, one_batch, rows, Path(scratch), ignore_progress)
