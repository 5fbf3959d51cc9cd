"""Trainings that are terminated or killed, and resumed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentworld.domains.live import live_domain
from agentworld.errors import Preempted
from agentworld.recipes.train import AgentRecipe, AgentRlRecipe, WorldRlRecipe
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.message import Message
from agentworld.records.progress import OnProgress, ignore_progress
from agentworld.records.sample import Sample
from agentworld.records.task import Task
from agentworld.train.parent import Parent
from agentworld.train.resume import newest_checkpoint
from machines.forked import run_with_ranks, start
from make import records
from make.pools import write_pool
from make.training import one_target
from make.worlds import ScriptedWorld
from waiting import DEADLINE, wait_for

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

    from agentworld.train.model import LanguageModel

pytestmark = pytest.mark.compute

Training = Callable[[Path, OnProgress], str]
"""Trains in a folder, and names the weights that it made."""

STEPS = 6
NUM_PROMPTS = 8
RL = {
    "learning_rate": 1e-4,
    "num_steps": STEPS,
    "prompts_per_step": 2,
    "group_size": 2,
    "max_tokens": 4,
}
WORLD = WorldRlRecipe(**RL, checkpoint_every=4)
AGENT = AgentRecipe(rl=AgentRlRecipe(**RL, checkpoint_every=4))


@pytest.fixture
def parent(language_model: LanguageModel, tmp_path: Path) -> Path:
    language_model.save(tmp_path / "parent")
    return tmp_path / "parent"


def reward_by_length(completions: list[list[Message]], **_: object) -> list[float]:
    return [float(len(completion[0]["content"]) % 2) for completion in completions]


@pytest.fixture(params=["tokens", "world", "agent"])
def train(
    request: pytest.FixtureRequest,
    parent: Path,
    samples: list[Sample],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Training:
    """A training of about six steps, of each kind; all begin with the same weights.

    RL has prompts for four steps, so its second epoch begins at the fifth.
    """
    from agentworld.train import agent_rl, world_rl
    from machines import paused_training

    pool = write_pool(tmp_path / "rl.parquet", map(one_target, samples[:NUM_PROMPTS]))
    records.dataset(rl=pool).write(tmp_path / "dataset.json")
    # the domain's rewards of an untrained model hardly differ
    monkeypatch.setattr(world_rl, "_reward_function", lambda _: reward_by_length)
    world = ScriptedWorld(reward=lambda action: float(len(action) % 2))

    def task_of(seed: int) -> Task:
        return live_domain("shell").task(seed % NUM_PROMPTS, held_out=False)

    def train_world(out: Path, tick: OnProgress) -> str:
        return world_rl.run(WORLD, tmp_path, Parent(parent), out, tick).artifact

    def train_agent(out: Path, tick: OnProgress) -> str:
        practice = agent_rl.Practice(world, records.digest("s"), task_of)
        return agent_rl.run(AGENT, Parent(parent), practice, out, tick).artifact

    def train_tokens(out: Path, tick: OnProgress) -> str:
        return paused_training.train(parent, out, tick)

    return {"tokens": train_tokens, "world": train_world, "agent": train_agent}[request.param]


def terminate_at(step: int, times: int = 1) -> OnProgress:
    """Raises SIGTERM while a step runs; 0 stands for the last step."""

    def tick(done: int, total: int) -> None:
        if done == (step or total):
            for _ in range(times):
                signal.raise_signal(signal.SIGTERM)

    return tick


@pytest.mark.parametrize("step", [5, 0], ids=["in the middle", "at its last step"])
def test_a_preempted_and_resumed_training_ends_with_the_same_weights(
    train: Training, tmp_path: Path, step: int
) -> None:
    expected_folder, preempted_folder = tmp_path / "whole", tmp_path / "preempted"
    expected, done_steps = train(expected_folder, ignore_progress), []
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Preempted, match="^preempted; run it again: it resumes from step") as error:
        train(preempted_folder, terminate_at(step))
    assert signal.getsignal(signal.SIGTERM) == handler
    resume_step = int(str(error.value).rpartition(" ")[2])
    assert newest_checkpoint(preempted_folder / "checkpoints") == f"checkpoint-{resume_step}"
    assert train(preempted_folder, lambda done, _: done_steps.append(done)) == expected
    assert done_steps[:1] == ([] if step == 0 else [resume_step + 1])


def test_a_broken_checkpoint_replaces_no_intact_checkpoint(parent: Path, tmp_path: Path) -> None:
    from machines import paused_training

    folder = tmp_path / "out/checkpoints"
    for step, remaining_steps in ((2, {2}), (7, {4, 7}), (5, {4, 5})):
        with pytest.raises(Preempted):
            paused_training.train(parent, tmp_path / "out", terminate_at(step))
        assert {path.name for path in folder.iterdir()} == {
            f"checkpoint-{n}" for n in remaining_steps
        }
        if step == 7:
            (folder / "checkpoint-7/optimizer.pt").write_bytes(b"broken")
    assert newest_checkpoint(folder) == "checkpoint-5"


def test_a_training_runs_outside_the_main_thread(parent: Path, tmp_path: Path) -> None:
    from machines import paused_training

    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(paused_training.train, parent, tmp_path / "out")
        assert future.result() != ArtifactManifest.of(parent).digest


def test_a_sigterm_after_the_last_step_is_ignored(
    parent: Path, samples: list[Sample], tmp_path: Path
) -> None:
    from transformers import TrainerCallback

    from agentworld.train.encode import encode, whole_episode
    from agentworld.train.model import load_model
    from agentworld.train.preemption import train_to_end
    from agentworld.train.trainer import NextTokenTrainer
    from machines.paused_training import RECIPE

    class LateSignal(TrainerCallback):
        def on_train_end(self, *_: object, **__: object) -> None:
            signal.raise_signal(signal.SIGTERM)

    model = load_model(Parent(parent))
    rows = list(encode(model.tokenizer, map(whole_episode, samples)))
    trainer = NextTokenTrainer(model, RECIPE, rows, tmp_path / "out", ignore_progress)
    trainer.add_callback(LateSignal())
    train_to_end(trainer)
    assert trainer.state.global_step == trainer.state.max_steps


def test_a_sigterm_during_the_check_across_ranks_preempts_after_the_next_step(
    parent: Path, tmp_path: Path
) -> None:
    from machines.paused_training import train_with_one_warned

    out = tmp_path / "out"
    run_with_ranks(tmp_path, train_with_one_warned, parent, out)
    messages = [(out / f"said-{rank}").read_text() for rank in (0, 1)]
    assert messages == ["preempted; run it again: it resumes from step 2"] * 2


def test_a_terminated_and_killed_training_resumes_from_its_last_checkpoint(
    parent: Path, tmp_path: Path
) -> None:
    from machines.paused_training import train_to

    log, out, expected_folder = (tmp_path / name for name in ("log", "out", "whole"))

    def steps() -> list[str]:
        return (out / "steps").read_text().split() if (out / "steps").exists() else []

    def start_terminated(step: int) -> ForkServerProcess:
        """A training that waits at the end of this step, where it received SIGTERM."""
        process = start(log, train_to, step, parent, out)
        wait_for(lambda: str(step) in steps())
        process.terminate()
        wait_for((out / "warned").exists)
        (out / "warned").unlink()
        return process

    def join(process: ForkServerProcess) -> tuple[int | None, int]:
        """The exit status of the process, and the first step that it did."""
        process.join(DEADLINE)
        return process.exitcode, int(steps()[0])

    terminated_process = start_terminated(2)
    (out / "go").touch()
    assert join(terminated_process) == (1, 1)
    assert "preempted; run it again: it resumes from step 2\n" in log.read_text()
    (out / "go").unlink()
    killed_process = start_terminated(5)
    killed_process.kill()
    assert join(killed_process) == (-signal.SIGKILL, 3)
    twice_terminated_process = start_terminated(6)
    twice_terminated_process.terminate()
    assert join(twice_terminated_process) == (-signal.SIGTERM, 5)
    assert join(start(log, train_to, 0, parent, out)) == (0, 5)
    undisturbed_process = start(log, train_to, 0, parent, expected_folder)
    undisturbed_process.join(DEADLINE)
    assert (out / "weights").read_text() == (expected_folder / "weights").read_text()
