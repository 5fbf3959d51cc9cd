"""Both kinds of RL through TRL's own trainer, on a model of one layer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentworld.domains.live import live_domain
from agentworld.errors import InputError
from agentworld.recipes.train import AgentRecipe, AgentRlRecipe, WorldRlRecipe
from agentworld.records.checkpoint import ArtifactManifest, Checkpoint
from agentworld.records.progress import ignore_progress
from agentworld.records.sample import Sample
from agentworld.train.parent import Parent
from make import records
from make.pools import write_pool
from make.worlds import ScriptedWorld

if TYPE_CHECKING:
    import torch

    from agentworld.train.agent_rl import Practice
    from agentworld.train.model import LanguageModel

pytestmark = pytest.mark.compute

WORLD = WorldRlRecipe(num_steps=2, prompts_per_step=2, group_size=2, max_tokens=4)
AGENT = AgentRecipe(rl=AgentRlRecipe(num_steps=2, prompts_per_step=2, group_size=2, max_tokens=4))


RL_FIGURES = {
    *("loss", "learning_rate", "gradient_norm", "reward", "reward_std", "equal_groups", "entropy"),
    *("answer_tokens", "cut_off_share", "tokens_per_second", "memory_gib", "holes"),
}


@pytest.fixture
def parent(language_model: LanguageModel, tmp_path: Path) -> Path:
    language_model.save(tmp_path / "parent")
    return tmp_path / "parent"


def practice(world: ScriptedWorld) -> Practice:
    """The tasks of a shell, in this world."""
    from agentworld.train.agent_rl import Practice

    tasks = live_domain("shell")
    return Practice(
        world, records.digest("simulator"), lambda seed: tasks.task(seed, held_out=False)
    )


def one_target(sample: Sample) -> Sample:
    turns = [turn.model_copy(update={"target": False}) for turn in sample.turns]
    turns[1] = sample.turns[1]
    return sample.model_copy(update={"turns": tuple(turns)})


PUBLISHED_SETTINGS = {
    "gspo": ("sequence", 3e-4, 4e-4),  # arXiv 2507.18071, section 5.1
    "grpo": ("token", 0.2, 0.28),  # arXiv 2503.14476, section 3.1
}


@pytest.mark.parametrize("algorithm", PUBLISHED_SETTINGS)
def test_the_ratio_clipping_equals_the_published_settings(algorithm: str, tmp_path: Path) -> None:
    from agentworld.train.group_rl import group_config

    recipe = WORLD.model_copy(update={"algorithm": algorithm})
    config = group_config(recipe, tmp_path, max_completion_tokens=4)
    settings = (config.importance_sampling_level, config.epsilon, config.epsilon_high)
    assert settings == PUBLISHED_SETTINGS[algorithm]
    assert (config.loss_type, config.beta) == ("grpo", 0.0)


def test_an_unknown_algorithm_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    from agentworld.train.group_rl import group_config

    recipe = WORLD.model_copy(update={"algorithm": "ppo"})
    with pytest.raises(InputError, match="no algorithm 'ppo' here; there is .*grpo.*gspo"):
        group_config(recipe, tmp_path, max_completion_tokens=4)


def test_world_rl_trains_on_several_domains_and_records_them(
    parent: Path, samples: list[Sample], tmp_path: Path
) -> None:
    from agentworld.train import world_rl

    logs = [sample.model_copy(update={"domain": "text"}) for sample in samples[:6]]
    pool = write_pool(tmp_path / "rl.parquet", map(one_target, [*logs, *samples[6:]]))
    dataset = records.dataset(rl=pool).model_copy(update={"domains": {"shell": 6, "text": 6}})
    dataset.write(tmp_path / "dataset.json")
    checkpoint = world_rl.run(WORLD, tmp_path, Parent(parent), tmp_path / "out", ignore_progress)
    assert checkpoint.domains == ("shell", "text")
    assert checkpoint.data == dataset.digest


def test_grpo_and_gspo_train_the_same_weights_with_one_step_per_batch(
    parent: Path, tmp_path: Path
) -> None:
    import torch
    from safetensors.torch import load_file

    from agentworld.train import agent_rl

    def train(algorithm: str) -> dict[str, torch.Tensor]:
        world = ScriptedWorld(reward=lambda action: float(len(action) % 2))
        recipe = AGENT.model_copy(
            update={"rl": AGENT.rl.model_copy(update={"algorithm": algorithm})}
        )
        agent_rl.run(recipe, Parent(parent), practice(world), tmp_path / algorithm, ignore_progress)
        return load_file(tmp_path / algorithm / "model/model.safetensors")

    initial_weights, grpo_weights = load_file(parent / "model.safetensors"), train("grpo")
    assert any(
        not torch.equal(initial_weights[name], weight) for name, weight in grpo_weights.items()
    )
    for name, weight in train("gspo").items():
        torch.testing.assert_close(weight, grpo_weights[name], rtol=0, atol=1e-5, msg=name)


def test_world_rl_writes_a_checkpoint_and_reports_the_figures_of_each_step(
    parent: Path, samples: list[Sample], tmp_path: Path
) -> None:
    from agentworld.train import world_rl

    pool = write_pool(tmp_path / "rl.parquet", map(one_target, samples))
    records.dataset(rl=pool).write(tmp_path / "dataset.json")
    figures_by_step: dict[int, Mapping[str, float]] = {}
    out = tmp_path / "out"
    checkpoint = world_rl.run(
        WORLD, tmp_path, Parent(parent), out, ignore_progress, figures_by_step.__setitem__
    )
    assert checkpoint == Checkpoint.read(tmp_path / "out" / "checkpoint.json")
    assert checkpoint.artifact == ArtifactManifest.of(tmp_path / "out" / "model").digest
    assert checkpoint.parents == (ArtifactManifest.of(parent).digest,)
    assert not checkpoint.from_scratch
    assert 0 <= checkpoint.metrics["last_reward"] <= 25
    assert list(figures_by_step) == [*range(1, WORLD.num_steps + 1)]
    assert figures_by_step[WORLD.num_steps]["reward"] == checkpoint.metrics["last_reward"]
    for figures in figures_by_step.values():
        assert figures.keys() == RL_FIGURES
        assert 0 < figures["answer_tokens"] <= WORLD.max_tokens
        assert figures["tokens_per_second"] > 0


def test_an_agent_is_trained_on_the_rewards_of_its_world(parent: Path, tmp_path: Path) -> None:
    from agentworld.train import agent_rl

    world = ScriptedWorld(reward=lambda action: float(len(action) % 2))
    start = Parent(parent, checkpoint=records.checkpoint("imitation", from_scratch=True))
    checkpoint = agent_rl.run(AGENT, start, practice(world), tmp_path / "out", ignore_progress)
    assert checkpoint.simulator == records.digest("simulator")
    assert world.num_episodes == 2 * 2 * 2
    assert checkpoint.artifact != ArtifactManifest.of(parent).digest
    assert checkpoint.from_scratch
    assert {(sample.policy, sample.policy_step) for sample in world.sampled if sample} == {
        (ArtifactManifest.of(parent).digest, 0),
        (ArtifactManifest.of(parent).digest, 1),
    }


def test_uncertain_steps_are_masked_and_counted_in_agent_rl(parent: Path, tmp_path: Path) -> None:
    from agentworld.train import agent_rl

    def train(name: str, *unsure_steps: int) -> Checkpoint:
        world = ScriptedWorld(
            reward=lambda action: float(len(action) % 2),
            unsure=lambda _task, step: step in unsure_steps,
        )
        return agent_rl.run(
            AGENT, Parent(parent), practice(world), tmp_path / name, ignore_progress
        )

    first, second, masked = train("sure"), train("again"), train("masked", 1, 2)
    assert first.artifact == second.artifact != masked.artifact
    assert (first.metrics["masked_steps"], masked.metrics["masked_steps"]) == (0, 2 * 8)
