"""The world model's pipeline with a model of one layer, for tests of failing processes.

CPT, RL, the gate and the registering step are real; the other steps are stand-ins that create the
necessary inputs at once, with receipts.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from agentworld.records.base import Digest
from agentworld.records.conclusion import Conclusion
from agentworld.records.step import StepReceipt
from agentworld.steps.conclude import conclusions
from agentworld.steps.table import steps_of
from agentworld.storage.receipts import finished_steps
from agentworld_pipelines.local import LOG
from waiting import JOB_DEADLINE

_PIPELINE = "world_model"
_STEPS = steps_of(_PIPELINE)
REAL = ("cpt", "rl", "gate", "register")
NUM_STEPS, CHECKPOINT_EVERY = 120, 40
"""Of CPT: each third of it takes half a second, in which a test must act."""
RECIPE = f"""
name: tiny
model: {{hidden_size: 32, intermediate_size: 64, num_layers: 1, head_size: 8, num_warmup_texts: 50}}
cpt:
  stage: cpt
  learning_rate: 3.0e-3
  muon_learning_rate: 0.02
  gradient_checkpointing: false
  tokens_per_batch: 256
  epochs: 40
  checkpoint_every: {CHECKPOINT_EVERY}
rl:
  learning_rate: 1.0e-4
  gradient_checkpointing: false
  num_steps: 8
  prompts_per_step: 2
  group_size: 2
  max_tokens: 4
  checkpoint_every: 1
"""
STAND_IN = """
from pathlib import Path
from agentworld.records.base import digest_bytes
from agentworld.runner.task import Plan

def plan(task):
    def work(out, tick):
        parent = task.folders.get("parent")
        {work}
        return digest_bytes(b"{step}")

    return Plan(work)
"""
PREPARE = """
        from make import records
        from make.pools import write_pool
        from make.training import one_target, samples
        pools = {"cpt": samples(), "sft": samples(), "rl": map(one_target, samples())}
        made = {name: write_pool(out / f"{name}.parquet", pool) for name, pool in pools.items()}
        records.dataset(**made).write(out / "dataset.json")
"""
SFT = """
        import shutil
        from agentworld.runner.step import output_of
        shutil.copytree(parent, out, dirs_exist_ok=True, ignore=lambda *_: ["receipt.json"])
        return output_of(parent)
"""
EVALUATE = """
        from make import records
        records.world_report().write(out / "report.json")
"""
WORK = {"prepare": PREPARE, "sft": SFT, "evaluate": EVALUATE}
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
    """The pipeline with its own store."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self._stand_ins = store / "stand-ins"
        self._stand_ins.mkdir(parents=True)
        modules = {step: f"agentworld.steps.{step}" for step in _STEPS if step not in REAL}
        for step, module in modules.items():
            text = STAND_IN.format(step=step, store=str(store), work=WORK.get(step, ""))
            (self._stand_ins / f"{module}.py").write_text(text)
        (self._stand_ins / "sitecustomize.py").write_text(FINDER)
        (store / "recipe.yaml").write_text(RECIPE)

    def copy_steps(self, other_store: Path, *, but: set[str]) -> None:
        """Copies the finished steps of another store, except for some of them."""
        for folder in (other_store / "steps").iterdir():
            if folder.name not in but:
                shutil.copytree(folder, self.store / "steps" / folder.name)

    def start(self) -> subprocess.Popen[bytes]:
        """Starts the pipeline; each step is a process with access to the stand-ins."""
        arguments = [f"recipe={self.store / 'recipe.yaml'}", f"store={self.store}"]
        path = os.pathsep.join([str(self._stand_ins), *sys.path])
        with (self.store / LOG).open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-u", "-m", "make.run_pipeline", _PIPELINE, *arguments],
                env={**os.environ, "PYTHONPATH": path},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def run(self) -> None:
        """Runs the pipeline to its end."""
        assert self.start().wait(JOB_DEADLINE) == 0, self.log()

    def until(self, process: subprocess.Popen[bytes], is_time: Callable[[], bool]) -> None:
        """Waits for a point of a run, which must not end before."""
        while not is_time():
            assert process.poll() is None, self.log()
            time.sleep(0.02)

    def failed(self, process: subprocess.Popen[bytes]) -> Conclusion:
        """The result of a run that must fail."""
        assert process.wait(JOB_DEADLINE) != 0, self.log()
        return conclusions(self.store)[0]

    def struck(
        self, step: str, number: signal.Signals, *instants: Callable[[], bool]
    ) -> Conclusion:
        """Runs through these points; at the last one, the step's process gets a signal."""
        process = self.start()
        for is_time in instants:
            self.until(process, is_time)
        self._process_of(process, step).send_signal(number)
        conclusion = self.failed(process)
        assert not list(finished_steps(self.store, step))
        return conclusion

    def checkpoints(self, step: str) -> dict[int, int]:
        """The checkpoints from which a running training can resume, with the time of each (ns)."""
        times = {}
        for manifest in self.store.glob(f"steps/{step}/*/checkpoints/*/manifest.json"):
            with suppress(FileNotFoundError):  # an older one is deleted when the next one exists
                times[int(manifest.parent.name.rpartition("-")[2])] = manifest.stat().st_mtime_ns
        return times

    def goes_on(self, step: str, checkpoint: int, sealed_at: int) -> bool:
        """Whether a training has resumed from a checkpoint; an earlier start would rewrite it."""
        checkpoints = self.checkpoints(step)
        return checkpoints.get(checkpoint) == sealed_at and max(checkpoints) > checkpoint

    def log(self) -> str:
        """The end of Kubeflow's output."""
        return (self.store / LOG).read_text()[-20_000:]

    def _process_of(self, pipeline: subprocess.Popen[bytes], step: str) -> psutil.Process:
        """Python's process, and not the shell that waits for it."""
        for process in psutil.Process(pipeline.pid).children(recursive=True):
            with suppress(psutil.Error):
                if {step, "kfp.dsl.executor_main"} <= set(process.cmdline()):
                    return process
        raise AssertionError(self.log())


def receipts(store: Path) -> dict[str, StepReceipt]:
    """The receipt of each finished step; there must be exactly one."""
    groups = {step: list(finished_steps(store, step)) for step in _STEPS}
    assert {len(value) for value in groups.values()} <= {0, 1}
    return {step: group[0].receipt for step, group in groups.items() if group}


def made(store: Path) -> dict[str, tuple[Digest, Digest]]:
    """Each finished step's key and output."""
    return {step: (receipt.key, receipt.output) for step, receipt in receipts(store).items()}
