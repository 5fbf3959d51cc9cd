import subprocess

import pytest

from agentworld.domains.sandbox import SandboxLimits, open_sandbox
from agentworld.runner.training_guard import LiveShellRefused, no_live_shell


@pytest.mark.parametrize("command", [["bwrap", "--help"], ["/usr/bin/bwrap", "true"]])
def test_no_sandbox_can_be_opened_while_the_guard_stands(command):
    with no_live_shell() as guard:
        with pytest.raises(LiveShellRefused, match="may not open a live shell"):
            subprocess.run(command, check=False)
        assert guard.num_refused == 1


def test_the_live_shells_own_door_is_shut(monkeypatch):
    monkeypatch.setattr("agentworld.domains.sandbox.check_sandbox", lambda: None)
    with no_live_shell() as guard, pytest.raises(LiveShellRefused):
        open_sandbox(["/bin/true"], SandboxLimits())
    assert guard.num_refused == 1


def test_other_programs_start_as_ever():
    with no_live_shell() as guard:
        assert subprocess.run(["true"], check=False).returncode == 0
    assert guard.num_refused == 0


def test_the_door_is_open_again_afterwards():
    with no_live_shell():
        pass
    with pytest.raises(FileNotFoundError):
        subprocess.run(["/nowhere/bwrap"], check=False)
