"""What a command that a policy or a model chose can do to the machine: nothing."""

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from agentworld.domains.sandbox import SandboxLimits, open_sandbox
from waiting import wait_for

ROOT = Path(__file__).parents[3]
BOMB = "bomb() { bomb | bomb & }; bomb; :(){ :|:& };:"


def run(script, limits=SandboxLimits(), seconds=20):
    """The output of a bash script in a sandbox."""
    process = open_sandbox(["/bin/bash", "-c", script], limits)
    try:
        output, _ = process.communicate(timeout=seconds)
    finally:
        process.kill()
        process.wait()
    return output.decode(errors="replace")


def family_of(process):
    """Every process of a sandbox, seen from outside."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(process.pid).children(recursive=True)
    return []


def seen_from_outside(process, file):
    """What the kernel says of the innermost process of a sandbox."""
    wait_for(lambda: any(each.name() == "sleep" for each in family_of(process)))
    inner = next(each for each in family_of(process) if each.name() == "sleep")
    return Path(f"/proc/{inner.pid}/{file}").read_text()


def memory_of(family):
    total = 0
    for member in family:
        with suppress(psutil.NoSuchProcess):
            total += member.memory_info().rss
    return total


@pytest.fixture
def opened():
    """Starts scripts that have no end, and ends them."""
    processes = []

    def start(script, limits=SandboxLimits()):
        processes.append(open_sandbox(["/bin/bash", "-c", script], limits))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("script", [BOMB, "while :; do sleep 100 & done"], ids=["bomb", "loop"])
def test_a_fork_bomb_reaches_its_limit_and_ends_with_its_sandbox(opened, script):
    process = opened(f"{script}\nsleep 100")
    most = 0
    for _ in range(20):
        most = max(most, len(family_of(process)))
        time.sleep(0.05)
    assert 3 < most <= SandboxLimits().processes + 2
    family = family_of(process)
    process.kill()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive


@pytest.mark.slow
def test_one_process_cannot_take_more_memory_than_its_limit():
    said = run("a=xxxxxxxxxxxxxxxx; while :; do a=$a$a; done; echo survived")
    assert "cannot allocate" in said
    assert "survived" not in said


@pytest.mark.slow
def test_many_processes_together_cannot_take_more_memory_than_theirs(opened):
    limits = SandboxLimits(memory_bytes=32 << 20, processes=6)
    hog = "(a=$(head -c 8m /dev/zero | tr '\\0' a); b=$a$a; sleep 100) &"
    process = opened(f"for i in 1 2 3 4 5 6 7 8; do {hog} done; sleep 100", limits)
    time.sleep(1)
    assert memory_of(family_of(process)) < limits.memory_bytes * limits.processes


def test_one_file_ends_at_its_limit():
    said = run("cd /home; yes > f; wc -c < f")
    assert int(said.split()[-1]) == SandboxLimits().file_bytes


def test_all_files_together_end_at_their_limit():
    said = run("cd /home; for i in 1 2 3 4; do head -c 3m /dev/zero > $i; done; du -sk .")
    assert "No space left on device" in said
    assert int(said.split()[-2]) <= SandboxLimits().disk_bytes >> 10


@pytest.mark.slow
def test_processor_time_ends_at_its_limit():
    started = time.monotonic()
    run("while :; do :; done", SandboxLimits(cpu_seconds=1))
    assert time.monotonic() - started < 15


@pytest.mark.parametrize(
    "path", ["/etc/shadow", "/etc/passwd", "/root", "/tmp", "/var", "/proc/1/root/etc", str(ROOT)]
)
def test_the_machines_files_are_not_there(path):
    said = run(f"ls {path} && echo seen")
    assert "No such file or directory" in said
    assert "seen" not in said


def test_the_machines_environment_is_not_there(monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_HOST", "kolu")
    said = run("env")
    assert "HOME=/home/agent" in said
    assert "SECRET" not in said
    assert str(ROOT) not in said


def test_the_machines_processes_are_not_there():
    assert "No such process" in run(f"kill -0 {os.getpid()}")
    assert "proc" not in run("ls /").split()


def test_there_is_no_network_but_the_sandboxes_own_loopback():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said = run(f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected")
    assert "Connection refused" in said or "unreachable" in said
    assert "connected" not in said


def test_there_is_no_interface_but_loopback(opened):
    _, *rest = seen_from_outside(opened("sleep 100"), "net/dev").splitlines()[1:]
    assert [line.split(":")[0].strip() for line in rest] == ["lo"]


def test_there_is_no_way_to_another_address():
    said = run("exec 3<>/dev/tcp/10.0.0.1/80 && echo connected")
    assert "unreachable" in said
    assert "connected" not in said


def test_the_user_is_nobody_and_has_no_capability(opened):
    assert run("id -u") != "0\n"
    status = seen_from_outside(opened("sleep 100"), "status").splitlines()
    values = dict(line.split(":\t", 1) for line in status)
    assert values["NoNewPrivs"] == "1"
    rights = {name: value for name, value in values.items() if name.startswith("Cap")}
    assert len(rights) == 5
    assert {int(value, 16) for value in rights.values()} == {0}


def test_no_program_makes_the_user_root():
    said = run("su -c id; sudo id; mount -t tmpfs x /home; chroot / id; unshare --net id; id -u")
    assert "uid=0" not in said
    assert said.split()[-1] != "0"


@pytest.mark.parametrize("kinds", ["-U", "-Urm", "-n", "-m", "-p --fork"])
def test_no_further_namespace_can_be_made(kinds):
    said = run(f"unshare {kinds} echo made")
    assert "Operation not permitted" in said
    assert "made" not in said


@pytest.mark.parametrize("folder", ["/", "/dev", "/dev/shm", "/usr"])
def test_nothing_can_be_written_outside_the_home(folder):
    said = run(f"echo kolu > {folder}/kolu && echo written; mkdir {folder}/tane && echo made")
    assert "written" not in said
    assert "made" not in said


def test_what_is_written_at_home_can_be_read():
    assert run("cd /home && mkdir agent && echo kolu > agent/a && cat agent/a") == "kolu\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a root to give up")
def test_a_sandbox_of_root_runs_as_somebody_who_owns_nothing(opened):
    process = opened("sleep 100 & sleep 100")
    time.sleep(0.3)
    family = family_of(process)
    assert family
    assert {member.uids().real for member in family} == {200_001}
    assert {member.uids().effective for member in family} == {200_001}


@pytest.mark.slow
def test_a_sandbox_dies_with_the_process_that_opened_it():
    script = (
        "from agentworld.domains.sandbox import *; import os, time\n"
        "open_sandbox(['/bin/sleep', '100'], SandboxLimits()); print('open', flush=True)\n"
        "time.sleep(100)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": "platform", "PATH": os.environ["PATH"]},
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    time.sleep(0.3)
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    assert family
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive


def test_without_bubblewrap_nothing_runs_and_one_sentence_says_why():
    script = (
        "from agentworld.domains.sandbox import *\n"
        "try: open_sandbox(['/bin/true'], SandboxLimits())\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": "platform", "PATH": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("SandboxUnavailable no sandbox: bubblewrap (bwrap) is not")
    assert done.stdout.count("\n") == 1
