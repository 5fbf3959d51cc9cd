import subprocess
import sys
import threading

import pytest

from agentworld.errors import StoreError
from agentworld.runner.lock import hold, holder_of

HOLD = "import sys, pathlib; from agentworld.runner.lock import hold\n"
HOLD += "with hold(pathlib.Path(sys.argv[1]), 'held'): print('held', flush=True); input()"


def test_a_held_lock_refuses_a_second_holder(tmp_path):
    with (
        hold(tmp_path / "lock", "first"),
        pytest.raises(StoreError, match="busy"),
        hold(tmp_path / "lock", "busy"),
    ):
        pass


def test_a_released_lock_can_be_held_again(tmp_path):
    for _ in range(2):
        with hold(tmp_path / "lock", "busy"):
            assert holder_of(tmp_path / "lock")
    assert not holder_of(tmp_path / "lock")


def test_every_holder_has_a_unique_name(tmp_path):
    names = []
    for _ in range(2):
        with hold(tmp_path / "lock", "busy"):
            names.append(holder_of(tmp_path / "lock"))
    assert None not in names
    assert len(set(names)) == 2


def test_patience_waits_until_a_lock_is_released(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout
        holder.stdout.readline()
        threading.Timer(0.3, holder.kill).start()
        with hold(tmp_path / "lock", "busy", patience_seconds=30):
            assert holder.wait() != 0


def test_a_lock_that_never_existed_is_not_held(tmp_path):
    assert not holder_of(tmp_path / "lock")


def test_a_killed_process_releases_its_lock(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        assert holder_of(tmp_path / "lock")
        holder.kill()
    assert not holder_of(tmp_path / "lock")
