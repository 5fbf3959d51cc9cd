"""Starts programs of several processes on this machine, as torchrun does."""

import subprocess
import sys
from pathlib import Path

import psutil

from waiting import DEADLINE

_TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")


def launch(*program: str | Path, num: int = 2) -> subprocess.Popen[str]:
    """Starts processes of a file with its arguments, or of -m and a module with its own."""
    command = [*_TORCHRUN, str(num), *map(str, program)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def ranks_of(launcher: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes that train, by rank; their own child processes come and go."""
    children = psutil.Process(launcher.pid).children()
    return sorted(children, key=lambda process: int(process.environ()["RANK"]))


def run_together(*program: str | Path, num: int = 2) -> str:
    """Waits for their successful end; returns their stderr."""
    launcher = launch(*program, num=num)
    _, stderr = launcher.communicate(timeout=DEADLINE)
    assert launcher.returncode == 0, stderr
    return stderr
