"""An agent that imitates recorded trajectories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import make.registry
from agentworld.domains.live import live_domain
from agentworld.lineage.base import WorldModel
from agentworld.recipes import Recipe
from agentworld.recipes.train import AgentRecipe
from agentworld.records.base import Digest
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.progress import ignore_progress
from agentworld.runner.task import Task
from agentworld.steps import imitate
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore
from agentworld.storage.trajectories import write_trajectories
from make import records, training

if TYPE_CHECKING:
    from agentworld.train.model import LanguageModel

pytestmark = pytest.mark.compute


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def simulator(
    store: Path, language_model: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> PinnedSimulator:
    """A simulator of a registered world model of two domains."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    language_model.save(tmp_path / "model")
    artifact = SimulatorStore(store).import_model(tmp_path / "model")
    stage = records.checkpoint("rl", artifact=artifact.digest, domains=("shell", "text"))
    world_model = WorldModel(stages=(stage,), report=records.digest("report"))
    make.registry.registry(store).register_world_model("world", world_model, tmp_path / "model")
    fields = {"artifact": artifact.digest, "files": artifact.files}
    return SimulatorStore(store).keep(records.manifest(**fields))


def test_imitation_redacts_secrets_only_if_the_recipe_enables_redaction(
    store: Path, simulator: PinnedSimulator, tmp_path: Path
) -> None:
    keys = set[str]()

    def train_agent(letter: str, *, redact: bool) -> Digest:
        folder = tmp_path / f"{letter} {redact}"
        secret = "ghp_" + f"{letter}B2c3D4e5F6g7" * 3
        turns = (f"echo {secret} > rimo.txt", "[0] ~"), ("cat rimo.txt", "kolu\n[0] ~")
        shell_task = live_domain("shell").task(0, held_out=False)
        write_trajectories(folder / "a.jsonl", [records.trajectory(*turns, task=shell_task)])
        agent = AgentRecipe().model_dump()
        agent["imitation"] |= {**training.TINY, "epochs": 4}
        fields = {"name": "mine", "agent": agent, "prepare": {"redact": redact}}
        recipe = Recipe.model_validate(fields)
        task = Task(recipe, store, {"collected": folder}, {}, {"simulator": simulator.digest})
        out = folder / "out"
        out.mkdir()
        plan = imitate.plan(task)
        keys.add(plan.inputs["redact"])
        digest = plan.work(out, ignore_progress)
        assert Checkpoint.read(out / "checkpoint.json").domains == ("shell", "text")
        return digest

    assert train_agent("a", redact=True) == train_agent("b", redact=True)
    assert train_agent("a", redact=False) != train_agent("b", redact=False)
    assert len(keys) == 2
