"""A store with a tiny data set, and a recipe of stages that take seconds."""

from pathlib import Path
from typing import NamedTuple

import yaml

from agentworld.records.sample import Sample
from make import records
from make.pools import write_pool

TINY = {
    "learning_rate": 3e-3,
    "muon_learning_rate": 0.02,
    "weight_decay": 0.0,
    "sequence_tokens": None,
    "packing": False,
    "gradient_checkpointing": False,
    "warmup_share": 0.02,
}
"""A stage of a new model, as in the shipped recipes."""
OF_RL = {"learning_rate": 1e-4, "gradient_checkpointing": False}
"""The same for RL."""
_STAGE = {**TINY, "tokens_per_batch": 256, "epochs": 4, "checkpoint_every": 5}
_RECIPE = {
    "name": "tiny",
    "model": {
        "vocabulary_size": 400,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_layers": 1,
        "head_size": 8,
        "num_warmup_texts": 20,
    },
    "cpt": {"stage": "cpt", **_STAGE},
    "sft": {"stage": "sft", **_STAGE},
    "rl": {**OF_RL, "num_steps": 2, "prompts_per_step": 2, "group_size": 3, "max_tokens": 4},
}


class Training(NamedTuple):
    """A training step's arguments, in their order."""

    recipe: str
    store: str
    data: str


def training(folder: Path, **stages: dict[str, object]) -> Training:
    """A new store in a folder; a stage's fields override those of the recipe here."""
    recipe = {
        key: {**part, **stages.get(key, {})} if isinstance(part, dict) else part
        for key, part in _RECIPE.items()
    }
    folder.mkdir()
    (folder / "tiny.yaml").write_text(yaml.safe_dump(recipe))
    data = records.finished_step(folder, "prepare", records.digest("data"))
    cpt = write_pool(data / "cpt.parquet", samples())
    sft = write_pool(data / "sft.parquet", samples())
    rl = write_pool(data / "rl.parquet", map(one_target, samples()))
    records.dataset(cpt=cpt, sft=sft, rl=rl).write(data / "dataset.json")
    return Training(str(folder / "tiny.yaml"), str(folder), str(data))


def samples() -> list[Sample]:
    """Samples of a few turns each, all of which are targets."""
    return [records.sample(seed, num_turns=3 + seed % 3) for seed in range(12)]


def one_target(sample: Sample) -> Sample:
    """The same sample with one target turn."""
    turns = [
        turn.model_copy(update={"target": index == 1}) for index, turn in enumerate(sample.turns)
    ]
    return sample.model_copy(update={"turns": tuple(turns)})
