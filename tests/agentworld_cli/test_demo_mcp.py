"""The recipes of live domains, with tiny models: from environments to weights, by commands."""

from pathlib import Path

import pytest
import yaml

from agentworld.recipes import recipe_path
from agentworld.records.checkpoint import Checkpoint
from agentworld.runner.folders import checkpoint_of, model_of
from agentworld.storage.pools import read_dataset, read_pool

pytestmark = pytest.mark.compute

TINY = {
    "collect": {"num_held_out_episodes": 6, "num_workers": 1},
    "model": {"hidden_size": 32, "intermediate_size": 64, "num_layers": 1, "num_warmup_texts": 60},
    "cpt": {"epochs": 1, "compile_layers": False},
    "agent": {"imitation": {"epochs": 1}},
}


def shrink(settings: dict[str, object], tiny_settings: dict[str, object]) -> dict[str, object]:
    """The recipe with these numbers instead of its own."""
    for name, value in tiny_settings.items():
        inner = settings.get(name, {})
        is_part = isinstance(value, dict) and isinstance(inner, dict)
        settings[name] = shrink(inner, value) if is_part else value
    return settings


@pytest.mark.parametrize(
    ("name", "domains", "num_transitions", "own_tags", "token"),
    [
        ("mcp", ["mcp"], 400, {"get_item"}, '"get_item"'),
        ("live", ["mcp", "shell", "terminal"], 200, {"get_item", "key"}, '"keystrokes"'),
    ],
)
def test_live_episodes_become_a_data_set_and_a_world_model(
    name, domains, num_transitions, own_tags, token, call, tmp_path
):
    recipe = tmp_path / "tiny.yaml"
    settings = shrink(yaml.safe_load(recipe_path(name).read_text()), TINY)
    settings["collect"]["num_transitions"] = num_transitions
    recipe.write_text(yaml.safe_dump(settings))

    def run_step(words: str) -> Path:
        result = call(f"{words} --recipe {recipe} --store {tmp_path}")
        assert result.code == 0, result.error
        return Path(result.out.strip())

    data = run_step(f"data prepare --collected {run_step('data collect')}")
    dataset = read_dataset(data)
    assert [*dataset.domains] == domains
    held_out = list(read_pool(data, dataset, "held_out"))
    tags = {tag for sample in held_out for turn in sample.turns for tag in turn.tags}
    assert {*own_tags, "history", "output", "unseen"} <= tags
    turns = [turn for sample in read_pool(data, dataset, "cpt") for turn in sample.turns]
    assert all(turn.target for turn in turns)
    cpt = run_step(f"train cpt --data {data}")
    checkpoint: Checkpoint = checkpoint_of(cpt)
    assert checkpoint.stage == "cpt"
    assert token in (model_of(cpt) / "tokenizer.json").read_text()
