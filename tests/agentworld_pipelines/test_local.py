"""The pipelines with Kubeflow's own runner, and steps that only record their calls."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import agentworld.steps
from agentworld.steps.conclude import conclusions
from agentworld.steps.table import MAIN_JOB
from waiting import JOB_DEADLINE

pytestmark = pytest.mark.compute

_STEP = """
from pathlib import Path
from agentworld.errors import EngineError
from agentworld.records.base import digest_bytes
from agentworld.runner.task import Plan
import make.job

def name(text):
    path = Path(text)
    return path.parent.name if path.parent.parent.name == "steps" else text

def plan(task):
    with open({log!r}, "a") as log:
        arguments = [*task.folders.values(), *task.texts.values()]
        print("{step}", task.recipe.name, task.store, *map(name, arguments), file=log)

    def work(out, tick):
        if {fails}:
            raise EngineError("the engine is gone; start it again")
        if "{step}" == "gate":
            make.job.verdict({reason!r}).write(out / "verdict.json")
        return digest_bytes(b"{step}")

    return Plan(work)
"""
# The stand-ins precede the real packages, whose other modules are still found.
_PACKAGE = "from pkgutil import extend_path\n__path__ = extend_path(__path__, __name__)\n"


def stand_ins(folder: Path, verdict: str, failing: str) -> Path:
    """A folder of steps, each of which logs its arguments, and a folder as the name of its step."""
    steps = folder / "stand-ins/agentworld/steps"
    steps.mkdir(parents=True)
    for package in (agentworld, agentworld.steps):
        source = Path(package.__file__).read_text()
        path = folder / "stand-ins" / Path(*package.__name__.split("."), "__init__.py")
        path.write_text(_PACKAGE + source)
    reason = "" if verdict == "passed" else "rl.rule is 0.3"
    for step in (*MAIN_JOB, "measure"):
        log = str(folder / "log")
        text = _STEP.format(step=step, log=log, reason=reason, fails=step == failing)
        (steps / f"{step}.py").write_text(text)
    return folder / "stand-ins"


def run(folder: Path, name: str, *arguments: str, verdict: str = "passed", failing: str = ""):
    """Runs a pipeline in a store, and returns the calls in their order."""
    path = os.pathsep.join([str(stand_ins(folder, verdict, failing)), *sys.path])
    words = [name, "recipe=demo", f"store={folder / 'store'}", *arguments]
    result = subprocess.run(
        [sys.executable, "-m", "make.run_pipeline", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=JOB_DEADLINE,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (result.returncode == 0) == (not failing), result.stderr
    log = (folder / "log").read_text()
    return log.replace(str(folder / "store"), "here").splitlines()


GATE_CALLS = [
    "collect demo here",
    "prepare demo here collect",
    "cpt demo here prepare",
    "sft demo here prepare cpt",
    "rl demo here prepare sft",
    "evaluate demo here prepare cpt sft rl",
    "gate demo here evaluate",
]
RELEASE_CALLS = [
    "register demo here evaluate cpt sft rl",
    "simulate demo here register",
    "deploy demo here simulate",
]
AGENT_CALLS = [
    "collect demo here",
    "imitate demo here collect terminal",
    "open_run demo here imitate",
    "agent demo here imitate open_run",
    "close_run demo here agent",
    "validate demo here imitate agent ",
    "register_agent demo here agent close_run validate",
    "audit demo here register_agent validate",
]


def test_a_world_model_that_passes_its_gate_is_registered_and_deployed(tmp_path):
    assert run(tmp_path, "world_model") == GATE_CALLS + RELEASE_CALLS
    (conclusion,) = conclusions(tmp_path / "store")
    assert (conclusion.pipeline, conclusion.recipe, conclusion.state) == (
        "world_model",
        "demo",
        "succeeded",
    )


def test_a_refusing_gate_ends_a_run_without_failure_and_skips_the_later_steps(tmp_path):
    assert run(tmp_path, "world_model", verdict="refused") == GATE_CALLS
    (conclusion,) = conclusions(tmp_path / "store")
    assert (conclusion.state, conclusion.step, conclusion.sentence) == (
        "refused",
        "gate",
        "rl.rule is 0.3",
    )


def test_the_agent_pipeline_trains_in_the_named_simulator(tmp_path):
    assert sorted(run(tmp_path, "agent", "simulator=terminal")) == sorted(AGENT_CALLS)
    (conclusion,) = conclusions(tmp_path / "store")
    assert (conclusion.pipeline, conclusion.state) == ("agent", "succeeded")


def test_a_failed_step_ends_the_run_and_is_recorded_in_the_conclusion(tmp_path):
    assert run(tmp_path, "world_model", failing="sft") == GATE_CALLS[:4]
    (conclusion,) = conclusions(tmp_path / "store")
    assert (conclusion.state, conclusion.step, conclusion.kind) == ("failed", "sft", "EngineError")
    assert conclusion.sentence == "the engine is gone; start it again"
    assert conclusion.started


@pytest.mark.parametrize("simulator", ["production", ""])
def test_the_nightly_pipeline_measures_the_simulator_under_its_run_id(tmp_path, simulator):
    (call,) = run(tmp_path, "nightly", f"simulator={simulator}")
    prefix, _, run_id = call.rpartition(" ")
    assert prefix == f"measure demo here {simulator}"
    assert re.fullmatch(r"[\w-]+", run_id)
    (conclusion,) = conclusions(tmp_path / "store")
    assert (conclusion.pipeline, conclusion.state) == ("nightly", "succeeded")
