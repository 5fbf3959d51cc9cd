"""Compiles the layers of the demo's model, by training a new one on its first batch.

A compiler that does not work is found at set-up, and what torch compiled it keeps for the demo:
what depends on the sizes of a layer, and what on the processor alone. The key under which torch
keeps it depends on the shape of the first batch and on what was imported before.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import agentworld.train.next_token  # noqa: F401  as in the demo
from agentworld.domains.terminal.drills import drills
from agentworld.domains.terminal.pieces import pieces
from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.progress import no_tick
from agentworld.train.batches import TokenBatches
from agentworld.train.encode import encode_texts
from agentworld.train.model import new_model
from agentworld.train.tokenizer import train_tokenizer
from agentworld.train.trainer import train_rows

recipe = load_recipe(recipe_path("demo"))
texts = list(drills(recipe.model.num_drills, recipe.model.seed))
tokenizer = train_tokenizer(texts, pieces(), recipe.model.vocabulary_size)
rows = list(encode_texts(tokenizer, texts))
lengths = [len(row.input_ids) for row in rows]
batches = TokenBatches(lengths, recipe.cpt.tokens_per_batch, epochs=1.0, seed=recipe.cpt.seed)
first = [rows[index] for index in next(iter(batches))]
with TemporaryDirectory() as scratch:
    model = new_model(recipe.model, tokenizer)
    train_rows(model, recipe.cpt, first, Path(scratch), no_tick)
