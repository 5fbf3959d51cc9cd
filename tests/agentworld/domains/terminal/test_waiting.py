"""Whether the foreground program of a pty waits for keys, by the kernel's data."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agentworld.domains.terminal.waiting import awaits_keys
from waiting import wait_for


def python(script):
    code = f"import os, select, threading, time; print('ready', flush=True); {script}"
    return shlex.join([sys.executable, "-I", "-S", "-c", code])


POLL = "p = select.poll(); p.register({}, select.POLLIN); p.poll({})"
EPOLL = "p = select.epoll(); p.register({}, select.EPOLLIN); p.poll({})"
THREAD = "threading.Thread(target={}, daemon=True).start(); input()"
SCRIPTS_FOR_KEYS = [
    "echo ready; exec cat",
    "echo ready; read -s name",
    "echo ready; cat </dev/tty | cat",
    "echo ready; seq 100000 | (read -u 3 name 3</dev/tty)",
    python("select.select([0], [], [])"),
    python(POLL.format(0, "")),
    python(EPOLL.format(0, "")),
    python(THREAD.format("threading.Event().wait")),
]
OTHER_SCRIPTS = [
    "echo ready; exec sleep 1000",
    "echo ready; read -t 1000 name",
    "echo ready; sleep 1000 | cat",
    "echo ready; sleep 1000 & exec cat",
    "stty -icanon min 0 time 200; echo ready; exec cat",
    python("select.select([0], [], [], 1000)"),
    python("select.select([os.pipe()[0]], [], [])"),
    python("select.select([], [], [0])"),
    python(POLL.format(0, 1_000_000)),
    python(POLL.format("os.pipe()[0]", "")),
    python(EPOLL.format(0, 1000)),
    python(EPOLL.format("os.pipe()[0]", "")),
    python(THREAD.format("lambda: time.sleep(1000)")),
]


@pytest.fixture
def start():
    """A function that starts a foreground program of a pty, and returns it and the pty's line."""
    programs = []

    def start_program(script):
        master, line = os.openpty()
        process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", "bash", "-c", script],
            stdin=line,
            stdout=line,
            stderr=line,
        )
        programs.append((process, master, line))
        output = b""
        while b"ready" not in output:
            output += os.read(master, 1024)
        return process, line

    yield start_program
    for process, master, line in programs:
        os.killpg(process.pid, 9)
        process.wait()
        os.close(master)
        os.close(line)


@pytest.mark.parametrize("script", SCRIPTS_FOR_KEYS)
def test_a_program_blocked_on_terminal_input_waits_for_keys(start, script):
    process, line = start(script)
    wait_for(lambda: awaits_keys(os.getpid(), process.pid, line))


@pytest.mark.parametrize("script", OTHER_SCRIPTS)
def test_a_program_that_can_continue_without_a_key_does_not_wait_for_keys(start, script):
    process, line = start(script)
    wait_for(lambda: {*states(process.pid)} == {"S"})
    assert not awaits_keys(os.getpid(), process.pid, line)


def states(group):
    """The states of the threads of a process group."""
    for path in Path("/proc").glob("[0-9]*/task/*/stat"):
        try:
            state, _, thread_group = path.read_text().rpartition(") ")[2].split()[:3]
        except OSError:
            continue
        if int(thread_group) == group:
            yield state


def test_a_missing_process_group_does_not_wait_for_keys(start):
    _, line = start("echo ready; exec cat")
    assert not awaits_keys(os.getpid(), 0, line)
