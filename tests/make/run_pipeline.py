"""Runs one pipeline by Kubeflow's own runner: `python -m make.run_pipeline NAME ARGUMENT=VALUE...`.

Its folders are in `kfp/` of the store that the arguments name.
"""

import sys

from kfp import local

from agentworld_pipelines.compile import PIPELINES


def main(name: str, *words: str) -> None:
    """Raises when a step fails."""
    arguments = dict(word.split("=", 1) for word in words)
    root = f"{arguments['store']}/kfp"
    local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=root)
    PIPELINES[name](None)(**arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
