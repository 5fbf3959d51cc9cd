"""The check of a GPU, on a machine that has none."""

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.compute

ROOT = Path(__file__).parents[1]


def test_a_machine_without_a_gpu_is_told_so_in_one_sentence() -> None:
    command = [ROOT / "tools/gpu_check.sh", "packing"]
    environment = {
        **os.environ,
        "PYTHON": str(ROOT / ".venv/bin/python"),
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "torch sees no GPU on this machine; run it where there is one"
    )
