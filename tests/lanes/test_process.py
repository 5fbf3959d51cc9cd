"""A separate pytest process: alone on its network, killed with all its descendants."""

import os
import socket
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

from lanes.process import ROOT, LaneProcess, deadline
from lanes.processor import Meter, tree_seconds
from waiting import wait_for

pytestmark = pytest.mark.waits

LISTENING_TEST = """
import os, socket, subprocess, time
def test_it():
    with socket.create_server(("127.0.0.1", {port})):
        child = subprocess.Popen(["sleep", "infinity"], start_new_session=True)
        open({told!r}, "w").write(f"{{child.pid}} {{os.environ['TMPDIR']}}")
        child.wait()
"""


def test_a_lane_can_use_an_occupied_port_and_leaves_no_process_or_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))  # as the Makefile sets it
    marker = tmp_path / "told"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        file = tmp_path / "test_it.py"
        file.write_text(LISTENING_TEST.format(port=listener.getsockname()[1], told=str(marker)))
        lane = LaneProcess("one", tmp_path / "lane", str(file), "-p", "lanes.plugin")
        lane.start()
        wait_for(lambda: not lane.is_running or (marker.exists() and marker.read_text()))
        assert lane.is_running, lane.output
        child, scratch = marker.read_text().split()
        assert os.path.isdir(scratch)
        lane.end()
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(child)).wait(30)
    assert not psutil.pid_exists(int(child))
    assert not os.path.exists(scratch)


def test_a_test_that_hangs_ends_its_lane_with_its_stack(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    file = tmp_path / "test_it.py"
    file.write_text("import threading\ndef test_it(): threading.Event().wait()\n")
    lane = LaneProcess("one", tmp_path / "lane", str(file), "-p", "lanes.plugin", *deadline(1))
    lane.start()
    try:
        wait_for(lambda: not lane.is_running)
    finally:
        lane.end()
    assert lane.exit_code
    assert "test_it.py" in lane.output
    assert "in test_it" in lane.output


def test_the_processor_time_of_child_processes_is_counted():
    meter = Meter(tree_seconds)
    code = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert meter.lap() >= 0.2  # the kernel counts in hundredths
