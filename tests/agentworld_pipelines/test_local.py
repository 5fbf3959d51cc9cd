"""The pipelines by Kubeflow's own runner, over steps that only say that they were called."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import agentworld_pipelines
from agentworld.steps import STEPS

pytestmark = pytest.mark.slow

_STEP = """
from collections import namedtuple

Verdict = namedtuple("Verdict", "folder verdict reason")

def {step}(*arguments):
    with open({log!r}, "a") as log:
        print("{step}", *arguments, file=log)
    return {made}
"""
_RUN = """
import os, sys
from kfp import local
from agentworld_pipelines.compile import PIPELINES
stand_ins, root, name, *arguments = sys.argv[1:]
os.environ["PYTHONPATH"] = os.pathsep.join([stand_ins, *sys.path[1:]])
local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=root)
PIPELINES[name](None)(**dict(each.split("=") for each in arguments))
"""


def run(folder: Path, verdict: str, *arguments: str) -> list[str]:
    """Runs a pipeline where each step makes its own name, and tells the calls in their order."""
    log = folder / "log"
    steps = folder / "stand-ins/agentworld/steps"
    steps.mkdir(parents=True)
    for package in (steps.parent, steps):
        (package / "__init__.py").touch()
    deploying = folder / "stand-ins/agentworld_pipelines"
    deploying.mkdir()
    ours = Path(agentworld_pipelines.__file__).parent
    (deploying / "__init__.py").write_text(f"__path__.append({str(ours)!r})")
    (deploying / "deploying.py").write_text(_STEP.format(step="deploy", log=str(log), made="''"))
    for step in (*STEPS, "measure"):
        made = f"Verdict('gate', {verdict!r}, 'why')" if step == "gate" else repr(step)
        (steps / f"{step}.py").write_text(_STEP.format(step=step, log=str(log), made=made))
    command = [sys.executable, "-c", _RUN, folder / "stand-ins", folder / "kfp", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return log.read_text().splitlines()


BEFORE = [
    "collect demo here",
    "prepare demo here collect",
    "cpt demo here prepare",
    "sft demo here prepare cpt",
    "rl demo here prepare sft",
    "evaluate demo here prepare cpt sft rl",
    "gate demo here evaluate",
]
AFTER = [
    "register here cpt sft rl evaluate",
    "simulate demo here register",
    "deploy demo here simulate ",
    "agent demo here collect simulate",
    "validate demo here simulate agent",
    "audit here agent validate",
]
JOB = ("recipe=demo", "store=here")


@pytest.mark.parametrize(("verdict", "ran"), [("passed", BEFORE + AFTER), ("refused", BEFORE)])
def test_a_refusing_gate_ends_a_run_well_and_what_comes_after_is_skipped(tmp_path, verdict, ran):
    # What nothing waits for, as a deployment, comes whenever there is room for it.
    assert sorted(run(tmp_path, verdict, "world_model", *JOB)) == sorted(ran)


def test_an_agent_is_trained_in_a_simulator_that_is_there(tmp_path):
    there = ("collected=collect", "simulator=simulate")
    assert run(tmp_path, "", "agent", *JOB, *there) == AFTER[3:]


@pytest.mark.parametrize("simulator", ["production", ""])
def test_what_is_served_is_measured_for_the_pipelines_own_run(tmp_path, simulator):
    (told,) = run(tmp_path, "", "nightly", *JOB, f"simulator={simulator}")
    before, _, job = told.rpartition(" ")
    assert before == f"measure demo here {simulator}"
    assert re.fullmatch(r"[\w-]+", job)
