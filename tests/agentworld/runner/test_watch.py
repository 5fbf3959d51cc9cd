import subprocess
import sys
import time

import psutil
import pytest

from agentworld.runner.watch import Watch, tree_memory_gib
from waiting import DEADLINE

HOLD = """
import subprocess, sys
from pathlib import Path
from agentworld.runner.lock import hold
with hold(Path(sys.argv[1]), "held"):
    worker = subprocess.Popen([sys.executable, "-c", sys.argv[2], sys.argv[1]])
    print(worker.pid, flush=True)
    worker.wait()
"""
WORK = """
import subprocess, sys, time
from pathlib import Path
from agentworld.runner.watch import Watch
with Watch(Path(sys.argv[1])):
    subprocess.run(["sleep", "60"])
"""


@pytest.mark.compute
def test_memory_includes_child_processes():
    before = tree_memory_gib()
    with subprocess.Popen(
        [sys.executable, "-c", "x = b'1' * (128 << 20); input()"], stdin=-1
    ) as child:
        deadline = time.monotonic() + 30
        while tree_memory_gib() < before + 0.12 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert tree_memory_gib() >= before + 0.12
        child.kill()


def test_a_watch_records_the_peak_memory(tmp_path):
    with Watch(tmp_path / "nobody.lock") as watch:
        pass
    assert 0 < watch.peak_memory_gib < 64


@pytest.mark.compute
def test_a_step_and_its_children_end_when_their_driver_is_killed(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path / "driver.lock"), WORK]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout
        worker = psutil.Process(int(driver.stdout.readline()))
        while not worker.children():
            time.sleep(0.05)
        tree = [worker, *worker.children()]
        driver.kill()
        _, alive = psutil.wait_procs(tree, timeout=DEADLINE)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
