"""Other projects' programs, unmodified, each in a separate environment that `make peers` builds."""

import os
import subprocess
from pathlib import Path

from waiting import JOB_DEADLINE

ROOT = Path(__file__).parents[2]


def python_of(environment: str) -> Path:
    """The interpreter of an environment: `openenv`, `openenv-0.10`, `verifiers` or `openai`."""
    return ROOT / ".venv-peers" / environment / "bin/python"


def run_peer(environment: str, *arguments: object, **variables: str) -> str:
    """The output of `python -m` with these arguments in an environment without agentworld."""
    command = [python_of(environment), "-m", *map(str, arguments)]
    environment_variables = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), **variables}
    result = subprocess.run(
        command,
        env=environment_variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=JOB_DEADLINE,
    )
    assert result.returncode == 0, (result.stdout + result.stderr)[-3000:]
    return result.stdout
