"""Trainings that are told to end, or killed, and begun again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import make
from agentworld.errors import Preempted
from agentworld.recipes.train import AgentRecipe, AgentRlRecipe, NextTokenRecipe, WorldRlRecipe
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.progress import Tick, no_tick
from agentworld.records.sample import Sample
from agentworld.storage.pools import write_pool
from agentworld.train.resume import newest_checkpoint
from launched import run_together
from worlds import ScriptedWorld

if TYPE_CHECKING:
    from agentworld.train.model import LanguageModel

pytestmark = [pytest.mark.slow, pytest.mark.torch]

Training = Callable[[Path, Tick], str]
"""Trains in a folder, and names the weights that it made."""

STEPS = 6
RL = {"num_steps": STEPS, "prompts_per_step": 2, "group_size": 2, "max_tokens": 4}
WORLD = WorldRlRecipe(**RL, checkpoint_every=4)
AGENT = AgentRecipe(rl=AgentRlRecipe(**RL, checkpoint_every=4))
TOKENS = NextTokenRecipe(stage="cpt", tokens_per_batch=256, epochs=2, checkpoint_every=4)


@pytest.fixture
def parent(language_model: LanguageModel, tmp_path: Path) -> Path:
    language_model.save(tmp_path / "parent")
    return tmp_path / "parent"


@pytest.fixture(params=["tokens", "world", "agent"])
def train(
    request: pytest.FixtureRequest, parent: Path, samples: list[Sample], tmp_path: Path
) -> Training:
    """A training of six steps or so, of each kind; the weights that it begins with are the same."""
    from agentworld.train import agent_rl, world_rl

    pool = write_pool(tmp_path / "rl.parquet", map(one_target, samples))
    make.dataset(rl=pool).write(tmp_path / "dataset.json")
    world = ScriptedWorld(reward=lambda action: float(len(action) % 2))

    def of_world(out: Path, tick: Tick) -> str:
        return world_rl.run(WORLD, tmp_path, parent, out, tick).artifact

    def of_agent(out: Path, tick: Tick) -> str:
        return agent_rl.run(AGENT, parent, world, make.digest("s"), out, tick).artifact

    def of_tokens(out: Path, tick: Tick) -> str:
        return next_tokens(parent, samples, out, tick)

    return {"tokens": of_tokens, "world": of_world, "agent": of_agent}[request.param]


def next_tokens(parent: Path, samples: list[Sample], out: Path, tick: Tick) -> str:
    from agentworld.train.encode import encode, whole_episode
    from agentworld.train.model import load_model
    from agentworld.train.trainer import train_rows

    trained = load_model(parent)
    rows = list(encode(trained.tokenizer, map(whole_episode, samples)))
    train_rows(trained, TOKENS, rows, out, tick)
    trained.save(out / "model")
    return ArtifactManifest.of(out / "model").digest


def one_target(sample: Sample) -> Sample:
    turns = [turn.model_copy(update={"target": False}) for turn in sample.turns]
    turns[1] = sample.turns[1]
    return sample.model_copy(update={"turns": tuple(turns)})


def told_at(wanted: int, times: int = 1) -> Tick:
    """Gives notice while a step runs; 0 stands for the last."""

    def tick(done: int, total: int) -> None:
        if done == (wanted or total):
            for _ in range(times):
                signal.raise_signal(signal.SIGTERM)

    return tick


@pytest.mark.parametrize("step", [3, 0], ids=["in the middle", "at its last step"])
def test_a_training_that_was_preempted_ends_with_the_weights_of_one_that_was_not(
    train: Training, tmp_path: Path, step: int
) -> None:
    whole, preempted = tmp_path / "whole", tmp_path / "preempted"
    undisturbed, seen = train(whole, no_tick), []
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Preempted, match="^preempted; run it again: it resumes from step") as told:
        train(preempted, told_at(step))
    assert signal.getsignal(signal.SIGTERM) == before
    at = int(str(told.value).rpartition(" ")[2])
    assert newest_checkpoint(preempted / "checkpoints") == f"checkpoint-{at}"
    assert train(preempted, lambda done, _: seen.append(done)) == undisturbed
    assert seen[:1] == ([] if step == 0 else [at + 1])


def test_a_broken_checkpoint_takes_no_whole_ones_place(
    parent: Path, samples: list[Sample], tmp_path: Path
) -> None:
    folder = tmp_path / "out/checkpoints"
    for told, left in ((2, {2}), (7, {4, 7}), (5, {4, 5})):
        with pytest.raises(Preempted):
            next_tokens(parent, samples, tmp_path / "out", told_at(told))
        assert {path.name for path in folder.iterdir()} == {f"checkpoint-{n}" for n in left}
        if told == 7:
            (folder / "checkpoint-7/optimizer.pt").write_bytes(b"broken")
    assert newest_checkpoint(folder) == "checkpoint-5"


def test_a_thread_that_hears_no_signals_trains_as_well(
    parent: Path, samples: list[Sample], tmp_path: Path
) -> None:
    with ThreadPoolExecutor(1) as threads:
        threads.submit(next_tokens, parent, samples, tmp_path / "out", no_tick).result()


def test_a_notice_after_the_last_step_is_let_pass(
    parent: Path, samples: list[Sample], tmp_path: Path
) -> None:
    from transformers import TrainerCallback

    from agentworld.train.encode import encode, whole_episode
    from agentworld.train.model import load_model
    from agentworld.train.preemption import train_to_end
    from agentworld.train.trainer import NextTokenTrainer

    class Late(TrainerCallback):
        def on_train_end(self, *_: object, **__: object) -> None:
            signal.raise_signal(signal.SIGTERM)

    trained = load_model(parent)
    rows = list(encode(trained.tokenizer, map(whole_episode, samples)))
    trainer = NextTokenTrainer(trained, TOKENS, rows, tmp_path / "out", no_tick)
    trainer.add_callback(Late())
    train_to_end(trainer)
    assert trainer.state.global_step == trainer.state.max_steps


WAITING = """
import os, signal, sys, threading, time
from pathlib import Path
import make
from agentworld.errors import Preempted
from agentworld.train.together import joined, rank
from test_preemption import next_tokens

def tick(done, total):
    if done == 1 and rank() == 0:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
    elif done == 1:
        time.sleep(2)

samples = [make.sample(seed, num_turns=3 + seed % 3) for seed in range(12)]
out = Path(sys.argv[2])
with joined():
    try:
        next_tokens(Path(sys.argv[1]), samples, out, tick)
    except Preempted as preempted:
        (out / f"said-{rank()}").write_text(str(preempted))
"""


def test_a_notice_while_the_others_are_asked_counts_after_the_next_step(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
    program, out = tmp_path / "waiting.py", tmp_path / "out"
    program.write_text(WAITING)
    run_together(program, parent, out)
    said = [(out / f"said-{rank}").read_text() for rank in (0, 1)]
    assert said == ["preempted; run it again: it resumes from step 2"] * 2


PROGRAM = """
import sys, time
from pathlib import Path
import make
from test_preemption import next_tokens

def tick(done, total):
    with open(sys.argv[2] + ".steps", "a") as steps:
        print(done, file=steps, flush=True)
    time.sleep(float(sys.argv[3]))

samples = [make.sample(seed, num_turns=3 + seed % 3) for seed in range(12)]
print(next_tokens(Path(sys.argv[1]), samples, Path(sys.argv[2]), tick))
"""


def test_a_training_that_is_told_to_end_and_killed_goes_on_from_where_it_was(
    parent: Path, samples: list[Sample], tmp_path: Path
) -> None:
    undisturbed, out = next_tokens(parent, samples, tmp_path / "whole", no_tick), tmp_path / "out"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    steps = tmp_path / "out.steps"

    def begin(seconds_a_step: float = 0.3) -> subprocess.Popen[str]:
        steps.write_text("")
        command = [sys.executable, "-c", PROGRAM, str(parent), str(out), str(seconds_a_step)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)

    def end(
        process: subprocess.Popen[str], after: int, *signals: signal.Signals
    ) -> tuple[int, str]:
        """Its status and its last words, where it is told to end after so many steps."""
        while len(steps.read_text().splitlines()) < after and process.poll() is None:
            time.sleep(0.01)
        for each in signals:
            process.send_signal(each)
            time.sleep(0.1)
        said = process.communicate(timeout=180)[1]
        return process.returncode, said.strip().splitlines()[-1]

    def first_step() -> int:
        return int(steps.read_text().split()[0])

    status, said = end(begin(), 2, signal.SIGTERM)
    assert (status, said.rpartition(":")[2]) == (1, " it resumes from step 2")
    status, _ = end(begin(), 3, signal.SIGTERM, signal.SIGKILL)
    assert (status, first_step()) == (-signal.SIGKILL, 3)
    status, _ = end(begin(), 2, signal.SIGTERM, signal.SIGTERM)
    assert (status, first_step()) == (-signal.SIGTERM, 5)
    last = begin(0)
    assert last.communicate(timeout=180)[0].strip().endswith(undisturbed)
    assert first_step() == 5
