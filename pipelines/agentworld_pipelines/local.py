"""The main job on this machine: one process for each step, one step after the other.

`start` is for programs that watch the job; the job itself is `python -m` of this module.
Kubeflow prints much, so that all of it goes to a log beside the results.
"""

import os
import subprocess
import sys
from pathlib import Path

LOG = "pipeline.log"


def start(recipe: str, store: Path) -> subprocess.Popen[bytes]:
    """Starts the job; it ends with status 0 when every step is finished."""
    with (store / LOG).open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", __name__, recipe, str(store)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def run(recipe: str, store: str) -> None:
    """Runs every step in a process of this interpreter; raises when one fails."""
    from kfp import local

    from agentworld_pipelines.world_model import world_model

    root = os.path.join(store, "kfp")
    local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=root)
    world_model()(recipe=recipe, store=store)


if __name__ == "__main__":
    run(*sys.argv[1:])
