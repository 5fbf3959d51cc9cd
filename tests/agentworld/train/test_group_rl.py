"""Both kinds of RL through TRL's own trainer, on a model of one layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import make
from agentworld.recipes.train import AgentRecipe, AgentRlRecipe, WorldRlRecipe
from agentworld.records.checkpoint import ArtifactManifest, Checkpoint
from agentworld.records.progress import no_tick
from agentworld.records.sample import Sample
from agentworld.storage.pools import write_pool
from worlds import ScriptedWorld

if TYPE_CHECKING:
    from agentworld.train.model import LanguageModel

pytestmark = [pytest.mark.slow, pytest.mark.torch]

WORLD = WorldRlRecipe(num_steps=2, prompts_per_step=2, group_size=2, max_tokens=4)
AGENT = AgentRecipe(rl=AgentRlRecipe(num_steps=2, prompts_per_step=2, group_size=2, max_tokens=4))


@pytest.fixture
def parent(language_model: LanguageModel, tmp_path: Path) -> Path:
    language_model.save(tmp_path / "parent")
    return tmp_path / "parent"


def one_target(sample: Sample) -> Sample:
    turns = [turn.model_copy(update={"target": False}) for turn in sample.turns]
    turns[1] = sample.turns[1]
    return sample.model_copy(update={"turns": tuple(turns)})


def test_a_world_is_trained_on_one_turn_of_each_trajectory(
    parent: Path, samples: list[Sample], tmp_path: Path
) -> None:
    from agentworld.train import world_rl

    pool = write_pool(tmp_path / "rl.parquet", map(one_target, samples))
    make.dataset(rl=pool).write(tmp_path / "dataset.json")
    made = world_rl.run(WORLD, tmp_path, parent, tmp_path / "out", no_tick)
    assert made == Checkpoint.read(tmp_path / "out" / "checkpoint.json")
    assert made.artifact == ArtifactManifest.of(tmp_path / "out" / "model").digest
    assert made.parents == (ArtifactManifest.of(parent).digest,)
    assert 0 <= made.metrics["last_reward"] <= 25


def test_an_agent_is_trained_on_the_rewards_of_its_world(parent: Path, tmp_path: Path) -> None:
    from agentworld.train import agent_rl

    world = ScriptedWorld(reward=lambda action: float(len(action) % 2))
    simulator = make.digest("simulator")
    made = agent_rl.run(AGENT, parent, world, simulator, tmp_path / "out", no_tick)
    assert made.simulator == simulator
    assert world.num_episodes == 2 * 2 * 2
    assert made.artifact != ArtifactManifest.of(parent).digest
    assert {(each.policy, each.policy_step) for each in world.sampled if each} == {
        (ArtifactManifest.of(parent).digest, 0),
        (ArtifactManifest.of(parent).digest, 1),
    }


def test_an_agent_learns_nothing_from_the_steps_that_its_world_is_not_sure_of_and_counts_them(
    parent: Path, tmp_path: Path
) -> None:
    from agentworld.train import agent_rl

    def trained(name: str, *unsure: int) -> Checkpoint:
        world = ScriptedWorld(
            reward=lambda action: float(len(action) % 2), unsure=lambda _task, step: step in unsure
        )
        return agent_rl.run(AGENT, parent, world, make.digest("s"), tmp_path / name, no_tick)

    sure, again, masked = trained("sure"), trained("again"), trained("masked", 1, 2)
    assert sure.artifact == again.artifact != masked.artifact
    assert (sure.metrics["masked_steps"], masked.metrics["masked_steps"]) == (0, 2 * 8)
