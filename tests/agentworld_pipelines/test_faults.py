"""The main job with real steps, whose processes are killed at chosen instants.

CPT, RL, the gate and the step that registers are the real ones, on a model of one layer; the
others make in a moment what these need, and keep receipts as all steps do.
"""

import os
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from agentworld.audit.receipts import finished_steps
from agentworld.records.step import StepReceipt
from agentworld.steps import STEPS
from agentworld_pipelines.local import LOG, start

pytestmark = [pytest.mark.slow, pytest.mark.torch]

REAL = ("cpt", "rl", "gate", "register")
RECIPE = """
name: tiny
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, head_size: 8, num_drills: 50}
cpt: {stage: cpt, tokens_per_batch: 256, epochs: 20, checkpoint_every: 2}
rl: {num_steps: 8, prompts_per_step: 2, group_size: 2, max_tokens: 4, checkpoint_every: 1}
"""
STAND_IN = """
import shutil
from pathlib import Path
import make
from agentworld.steps.base import output_of, run_step
from agentworld.storage.pools import write_pool

def made(out, samples):
    targets = [
        each.model_copy(update={{"turns": tuple(
            turn.model_copy(update={{"target": n == 1}}) for n, turn in enumerate(each.turns)
        )}})
        for each in samples
    ]
    pools = {{"cpt": samples, "sft": samples, "rl": targets}}
    return {{name: write_pool(out / f"{{name}}.parquet", pool) for name, pool in pools.items()}}

def work(out, tick, parent):
    if "{step}" == "sft":
        shutil.copytree(parent, out, dirs_exist_ok=True, ignore=lambda *_: ["receipt.json"])
        return output_of(parent)
    if "{step}" == "prepare":
        pools = made(out, [make.sample(seed, num_turns=3 + seed % 3) for seed in range(12)])
        make.dataset(**pools).write(out / "dataset.json")
    if "{step}" == "evaluate":
        make.world_report().write(out / "report.json")
    return make.digest("{step}")

def {step}(*arguments):
    done = run_step(Path({store!r}), "{step}", [], {{}}, lambda *at: work(*at, arguments[-1]))
    return str(done)
"""
FINDER = """
import sys
from importlib.util import spec_from_file_location
from pathlib import Path

class StandIns:
    @staticmethod
    def find_spec(name, *_):
        file = Path(__file__).with_name(name + ".py")
        return spec_from_file_location(name, file) if file.is_file() else None

sys.meta_path.insert(0, StandIns)
"""


class Job:
    """The main job over a store of its own."""

    def __init__(self, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = store
        stand_ins = store / "stand-ins"
        stand_ins.mkdir(parents=True)
        modules = {step: f"agentworld.steps.{step}" for step in STEPS if step not in REAL}
        modules["deploy"] = "agentworld_pipelines.deploying"
        for step, module in modules.items():
            text = STAND_IN.format(step=step, store=str(store))
            (stand_ins / f"{module}.py").write_text(text)
        (stand_ins / "sitecustomize.py").write_text(FINDER)
        (store / "recipe.yaml").write_text(RECIPE)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(stand_ins), *sys.path]))

    def run(self) -> None:
        """To its end."""
        assert start(str(self.store / "recipe.yaml"), self.store).wait(400) == 0, self._log()

    def killed(self, step: str, is_time: Callable[[], bool]) -> None:
        """Runs until an instant, at which a step's process is killed and the job fails."""
        job = start(str(self.store / "recipe.yaml"), self.store)
        while not is_time():
            assert job.poll() is None, self._log()
            time.sleep(0.005)
        for process in psutil.Process(job.pid).children(recursive=True):
            with suppress(psutil.Error):
                if step in process.cmdline() and "--function_to_execute" in process.cmdline():
                    process.kill()
        assert job.wait(60) != 0
        assert not list(finished_steps(self.store, step))

    def receipts(self) -> dict[str, StepReceipt]:
        """Of each step that was done, of which there has to be one."""
        done = {step: list(finished_steps(self.store, step)) for step in STEPS}
        assert {len(each) for each in done.values()} <= {0, 1}
        return {step: each[0].receipt for step, each in done.items() if each}

    def checkpoints(self, step: str) -> list[Path]:
        """What a training that is under way could go on from."""
        return list((self.store / "steps" / step).glob("*/checkpoints/*/manifest.json"))

    def num_versions(self) -> int:
        """In the registry's own database."""
        if not (self.store / "mlflow.db").is_file():
            return 0
        address = f"file:{self.store}/mlflow.db?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as database, suppress(sqlite3.Error):
            return int(database.execute("select count(*) from model_versions").fetchone()[0])
        return 0

    def _log(self) -> str:
        return (self.store / LOG).read_text()[-5_000:]


def test_a_job_that_was_killed_at_its_worst_instants_ends_as_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = Job(tmp_path / "undisturbed", monkeypatch)
    undisturbed.run()
    expected = undisturbed.receipts()
    assert set(REAL) <= set(expected)

    job = Job(tmp_path / "killed", monkeypatch)
    job.killed("cpt", lambda: bool(job.checkpoints("cpt")))
    job.killed("rl", lambda: bool(job.checkpoints("rl")))
    # A version is made, and what comes before the receipt is not written: nobody reads the pipe.
    (register,) = (undisturbed.store / "steps/register").glob("*/receipt.json")
    pipe = job.store / "steps/register" / register.parent.name / "version.json.draft"
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    job.killed("register", lambda: job.num_versions() > 0)
    pipe.unlink()
    job.run()

    made = job.receipts()
    assert {step: (each.key, each.output) for step, each in made.items()} == {
        step: (each.key, each.output) for step, each in expected.items()
    }
    assert job.num_versions() == undisturbed.num_versions() == 1
    assert len(list(job.store.glob("steps/*/*/model/model.safetensors"))) == 3
    assert not list(job.store.glob("steps/*/*/checkpoints"))
