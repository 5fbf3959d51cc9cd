"""Runs the main job on this machine: one process for each step, one step after the other.

`start` is for programs that watch the job; the job itself is `python -m` of this module. Kubeflow
prints much, so its output goes to a log beside the results.
"""

import subprocess
import sys
from pathlib import Path

from agentworld.recipes import load_recipe, recipe_path
from agentworld.runner.folders import verdict_of
from agentworld.runner.progress import read_progress
from agentworld.runner.remote import local_path, local_store
from agentworld.runner.step import output_of
from agentworld.storage.working_copy import address_of

LOG = "pipeline.log"


def start(recipe: str, store: Path) -> subprocess.Popen[bytes]:
    """Starts the job in a store's folder; it ends with status 0 when every step has finished."""
    with (store / LOG).open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", __name__, recipe, address_of(str(store))],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def run(recipe: str, store: str) -> None:
    """Runs every step in its own process; raises if one fails.

    First a world model, and if its gate passed, an agent in its simulator.
    """
    from kfp import local

    from agentworld_pipelines.agent import agent
    from agentworld_pipelines.world_model import all_stages, world_model

    home = local_store(store)
    root = str(home / "kfp")
    local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=root)
    stages = all_stages(load_recipe(recipe_path(local_path(recipe, store))))
    world_model(stages=stages)(recipe=recipe, store=store)
    if verdict_of(_folder(home, "gate")).verdict == "passed":
        simulator = output_of(str(_folder(home, "simulate")))
        agent()(recipe=recipe, store=store, simulator=simulator)


def _folder(store: Path, step: str) -> Path:
    """The folder of a step that this job has finished."""
    progress = read_progress(store, step)
    assert progress is not None
    return Path(progress.folder)


if __name__ == "__main__":
    run(*sys.argv[1:])
