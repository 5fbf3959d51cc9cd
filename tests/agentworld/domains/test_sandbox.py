"""A command from a policy or a model cannot affect the machine."""

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from agentworld.domains.sandbox import (
    SandboxAccess,
    SandboxLimits,
    can_show_processes,
    open_sandbox,
)
from waiting import DEADLINE, wait_for

pytestmark = pytest.mark.waits

ROOT = Path(__file__).parents[3]
BOMB = "bomb() { bomb | bomb & }; bomb; :(){ :|:& };:"


def run(script, limits=SandboxLimits(), seconds=60, access=SandboxAccess()):
    """The output of a bash script in a sandbox."""
    sandbox = open_sandbox(["/bin/bash", "-c", script], limits, access=access)
    try:
        output, _ = sandbox.process.communicate(timeout=seconds)
    finally:
        sandbox.close()
    return output.decode(errors="replace")


def family_of(process):
    """Every process of a sandbox, as listed outside the sandbox."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(process.pid).children(recursive=True)
    return []


def read_proc(process, file):
    """The kernel's data of the innermost process of a sandbox."""
    wait_for(lambda: sleepers_of(family_of(process)))
    innermost = sleepers_of(family_of(process))[0]
    return Path(f"/proc/{innermost.pid}/{file}").read_text()


def sleepers_of(family):
    """The members that run `sleep`; the sandbox around them is complete."""
    sleepers = []
    for member in family:
        with suppress(psutil.NoSuchProcess):
            sleepers += [member] * (member.name() == "sleep")
    return sleepers


def memory_of(family):
    total = 0
    for member in family:
        with suppress(psutil.NoSuchProcess):
            total += member.memory_info().rss
    return total


@pytest.fixture
def start_script():
    """A function that starts endless scripts in sandboxes, which are closed after the test."""
    sandboxes = []

    def start(script, limits=SandboxLimits()):
        sandboxes.append(open_sandbox(["/bin/bash", "-c", script], limits))
        return sandboxes[-1].process

    yield start
    for sandbox in sandboxes:
        sandbox.close()


@pytest.mark.parametrize("script", [BOMB, "while :; do sleep 100 & done"], ids=["bomb", "loop"])
def test_a_fork_bomb_reaches_its_limit_and_ends_with_its_sandbox(start_script, script):
    process = start_script(f"{script}\nsleep 100")
    wait_for(lambda: len(family_of(process)) > 3)
    for _ in range(20):
        assert len(family_of(process)) <= SandboxLimits().processes + 2
        time.sleep(0.05)
    family = family_of(process)
    process.kill()
    _, survivors = psutil.wait_procs(family, timeout=DEADLINE)
    assert not survivors


def test_one_process_cannot_take_more_memory_than_its_limit():
    output = run("a=xxxxxxxxxxxxxxxx; while :; do a=$a$a; done; echo survived")
    assert "cannot allocate" in output
    assert "survived" not in output


def test_many_processes_together_cannot_exceed_the_total_memory_limit(start_script):
    limits = SandboxLimits(memory_bytes=32 << 20, processes=6)
    hog = "(a=$(head -c 8m /dev/zero | tr '\\0' a); b=$a$a; sleep 100) &"
    process = start_script(f"for i in 1 2 3 4 5 6 7 8; do {hog} done; sleep 100", limits)
    time.sleep(1)
    assert memory_of(family_of(process)) < limits.memory_bytes * limits.processes


def test_a_file_cannot_exceed_its_size_limit():
    output = run("cd /home; yes > f; wc -c < f")
    assert int(output.split()[-1]) == SandboxLimits().file_bytes


def test_all_files_together_cannot_exceed_the_disk_limit():
    output = run("cd /home; for i in 1 2 3 4; do head -c 3m /dev/zero > $i; done; du -sk .")
    assert "No space left on device" in output
    assert int(output.split()[-2]) <= SandboxLimits().disk_bytes >> 10


def test_empty_files_count_toward_the_file_limit():
    output = run("cd /home; i=0; while : >f$((++i)); do :; done; echo $i")
    assert "No space left on device" in output
    assert int(output.split()[-1]) <= SandboxLimits().files


def test_the_first_process_has_all_limits():
    output = run("ulimit -l -q -c -i -n; df --output=itotal /home")
    numbers = [int(word) for word in output.split() if word.isdigit()]
    assert numbers == [0, 0, 0, 256, 64, SandboxLimits().files]


@pytest.mark.parametrize(
    "option", ["-M 4096", "-Q", "-S 1"], ids=["memory", "messages", "semaphores"]
)
def test_no_system_v_ipc_object_can_be_created(option):
    output = run(f"ipcmk {option}")
    assert "Operation not permitted" in output
    assert "id:" not in output


def test_the_sandbox_has_no_pseudo_terminals():
    assert "No such file or directory" in run("exec 3<>/dev/ptmx && echo taken; ls /dev/pts/*")


def test_a_process_ends_at_its_processor_time_limit():
    assert run("ulimit -t; while :; do :; done", SandboxLimits(cpu_seconds=1)).startswith("1\n")


@pytest.mark.parametrize(
    "path", ["/etc/shadow", "/etc/passwd", "/root", "/tmp", "/var", "/proc/1/root/etc", str(ROOT)]
)
def test_the_sandbox_has_no_files_of_the_host(path):
    output = run(f"ls {path} && echo seen")
    assert "No such file or directory" in output
    assert "seen" not in output


def test_the_sandbox_has_no_environment_variables_of_the_host(monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_HOST", "kolu")
    output = run("env")
    assert "HOME=/home/agent" in output
    assert "SECRET" not in output
    assert str(ROOT) not in output


def test_the_sandbox_has_no_access_to_processes_of_the_host():
    assert "No such process" in run(f"kill -0 {os.getpid()}")
    assert "proc" not in run("ls /").split()


def test_the_sandbox_has_no_network():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        output = run(f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected")
    assert "Operation not permitted" in output
    assert "connected" not in output


def test_the_sandbox_has_only_the_loopback_interface(start_script):
    _, *lines = read_proc(start_script("sleep 100"), "net/dev").splitlines()[1:]
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]


def test_the_sandbox_user_is_not_root_and_has_no_capabilities(start_script):
    assert run("id -u") != "0\n"
    status = read_proc(start_script("sleep 100"), "status").splitlines()
    values = dict(line.split(":\t", 1) for line in status)
    assert values["NoNewPrivs"] == "1"
    capabilities = {name: value for name, value in values.items() if name.startswith("Cap")}
    assert len(capabilities) == 5
    assert {int(value, 16) for value in capabilities.values()} == {0}


def test_a_sandbox_has_the_highest_oom_score_adjustment(start_script):
    assert read_proc(start_script("sleep 100"), "oom_score_adj") == "1000\n"


def test_no_program_makes_the_user_root():
    output = run("su -c id; sudo id; mount -t tmpfs x /home; chroot / id; unshare --net id; id -u")
    assert "uid=0" not in output
    assert output.split()[-1] != "0"


@pytest.mark.parametrize("kinds", ["-U", "-Urm", "-n", "-m", "-p --fork"])
def test_no_further_namespace_can_be_made(kinds):
    output = run(f"unshare {kinds} echo made")
    assert "Operation not permitted" in output
    assert "made" not in output


@pytest.mark.parametrize("folder", ["/", "/dev", "/dev/shm", "/usr"])
def test_nothing_can_be_written_outside_the_home(folder):
    output = run(f"echo kolu > {folder}/kolu && echo written; mkdir {folder}/tane && echo made")
    assert "written" not in output
    assert "made" not in output


def test_a_file_written_in_the_home_can_be_read():
    assert run("cd /home && mkdir agent && echo kolu > agent/a && cat agent/a") == "kolu\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a root to give up")
def test_a_sandbox_opened_by_root_runs_as_an_unprivileged_user(start_script):
    process = start_script("sleep 100 & sleep 100")
    wait_for(lambda: len(sleepers_of(family_of(process))) == 2)
    family = family_of(process)
    assert {member.uids().real for member in family} == {200_001}
    assert {member.uids().effective for member in family} == {200_001}


def test_a_shared_folder_is_read_only_and_errors_are_written_to_their_file(open_folder):
    folder = open_folder / "shared"
    folder.mkdir()
    (folder / "a").write_text("kolu")
    (open_folder / "besa").touch()
    script = f"cat {folder}/a; echo tane >&2; echo x > {folder}/b || ls {open_folder}"
    with (open_folder / "errors").open("w+") as errors:
        access = SandboxAccess(folders=(folder,), error_file=errors.fileno())
        sandbox = open_sandbox(["/bin/bash", "-c", script], SandboxLimits(), access=access)
        output, _ = sandbox.process.communicate(timeout=DEADLINE)
        sandbox.close()
        errors.seek(0)
        problems = errors.read()
    assert output.decode() == "kolushared\n"
    assert problems.startswith("tane\n")
    assert "Read-only file system" in problems


def test_proc_in_a_sandbox_shows_only_its_processes_and_is_read_only():
    assert can_show_processes(), "this machine gives a sandbox no /proc: it covers parts of its own"
    assert Path("/proc/keys").read_text()
    files = "self/oom_score_adj self/mem self/comm sys/kernel/hostname"
    script = (
        "ls -d /proc/[0-9]*; cat /proc/keys && echo shown;"
        f" for name in {files}; do : >/proc/$name && echo written; done"
    )
    access = SandboxAccess(shows_processes=True)
    output = run(script, access=access)
    processes = {line for line in output.splitlines() if line.startswith("/proc/")}
    assert "/proc/1" in processes <= {"/proc/1", "/proc/2"}
    assert "shown" not in output
    assert "/proc/keys: Permission denied" in output
    assert output.count("Read-only file system") == 4
    assert "written" not in output


def test_a_sandbox_ends_with_its_starter():
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
    wait_for(lambda: sleepers_of(family_of(process)))
    family = family_of(process)
    process.kill()
    process.communicate()
    _, survivors = psutil.wait_procs(family, timeout=DEADLINE)
    assert not survivors


POD = """
import psutil
from agentworld.domains.sandbox import SandboxLimits, open_sandbox
from agentworld.domains.shell.session import LiveShell
from agentworld.errors import EnvironmentBroken
for command in ["exit", "kill -9 $$", "sleep 100 & (setsid sleep 100 &)", "kill -STOP $$"]:
    with LiveShell(seconds=2) as shell:
        try: shell.reset(), shell.step(command)
        except EnvironmentBroken: pass
open_sandbox(["/bin/sleep", "100"], SandboxLimits()).close()
print(*(f"{each.name()} {each.status()}" for each in psutil.process_iter()))
"""


def test_sandboxes_leave_no_processes_to_the_first_process_of_a_pod():
    unshare = ["unshare", "--pid", "--fork", "--mount", "--mount-proc", "--kill-child"]
    user_options = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    process = subprocess.run(
        [*unshare, *user_options, sys.executable, "-c", POD],
        env={"PYTHONPATH": "platform", "PATH": os.environ["PATH"]},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.split()[1:] == ["running"]


def test_without_bubblewrap_opening_a_sandbox_raises_a_one_line_error():
    script = (
        "from agentworld.domains.sandbox import *\n"
        "try: open_sandbox(['/bin/true'], SandboxLimits())\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    process = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": "platform", "PATH": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.startswith("EnvironmentUnavailable no sandbox: bubblewrap (bwrap) is not")
    assert process.stdout.count("\n") == 1
