import os
import secrets
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Event

import httpx
import pytest

from agentworld.engine.process import free_port, running
from agentworld.errors import EngineError
from waiting import DEADLINE, wait_for

CONNECTION_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
HANG = "import time; time.sleep(60)"
SPAWN = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {HANG!r}]).pid, "
SPAWN += f"flush=True); {HANG}"


def start(tmp_path, *arguments, port=1, **environment):
    command = [sys.executable, *arguments]
    return running("the server", command, environment, port, tmp_path / "logs" / "server.log")


def read_first_line(server):
    """The first line that the server prints, as soon as it is complete."""
    wait_for(lambda: "\n" in server.log.read_text())
    return server.log.read_text().strip()


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def kill(server):
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()


@pytest.mark.compute
def test_a_server_runs_only_during_the_block(tmp_path):
    port = free_port()
    listen = ("-m", "http.server", str(port), "--bind", "127.0.0.1")
    with start(tmp_path, *listen, port=port) as server:
        server.wait_until_ready("/", DEADLINE)
        assert httpx.get(server.url).is_success
    assert not is_alive(server.process.pid)


def test_environment_values_are_not_in_the_servers_command_line(tmp_path):
    code = f"import os; print(os.environ['LEDGER'], os.environ['HOME'], flush=True); {HANG}"
    with start(tmp_path, "-c", code, LEDGER="a-password") as server:
        assert read_first_line(server).split() == ["a-password", os.environ["HOME"]]
        assert "a-password" not in " ".join(server.process.args)


def test_a_free_port_avoids_the_ephemeral_port_range():
    first, last = map(int, CONNECTION_PORTS.read_text().split())
    has_few_ports_below = first < 18_000
    assert has_few_ports_below or not any(first <= free_port() <= last for _ in range(20))


def test_a_free_port_is_neither_in_use_nor_returned_twice(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        used_ports = [listener.getsockname()[1], free_port()]
        queue, draw = list(used_ports), secrets.choice
        monkeypatch.setattr("secrets.choice", lambda ports: queue.pop() if queue else draw(ports))
        assert free_port() not in used_ports
    assert queue == []


def test_a_server_ends_when_the_block_fails(tmp_path):
    with pytest.raises(KeyError), start(tmp_path, "-c", HANG) as server:
        raise KeyError("ours")
    assert not is_alive(server.process.pid)


def test_a_servers_child_processes_end_with_the_server(tmp_path):
    with start(tmp_path, "-c", SPAWN) as server:
        child = int(read_first_line(server))
        assert is_alive(child)
    wait_for(lambda: not is_alive(child))


def test_a_server_that_fails_to_start_raises_with_the_end_of_its_log(tmp_path):
    with (
        pytest.raises(EngineError, match=r"status 3; the end of .*server.log says:\nno such model"),
        start(tmp_path, "-c", "import sys; print('no such model'); sys.exit(3)") as server,
    ):
        server.wait_until_ready("/", DEADLINE)


def test_a_dead_servers_error_replaces_the_blocks_exception(tmp_path):
    def work():
        with start(tmp_path, "-c", HANG) as server:
            kill(server)
            raise KeyError("what its death looks like")

    with pytest.raises(EngineError, match="status -9") as error:
        work()
    assert isinstance(error.value.__context__, KeyError)


def test_a_server_that_died_during_the_block_raises_at_the_end(tmp_path):
    def work():
        with start(tmp_path, "-c", HANG) as server:
            kill(server)

    with pytest.raises(EngineError, match="status -9"):
        work()


def test_a_server_that_is_never_ready_is_an_error(tmp_path):
    with (
        pytest.raises(EngineError, match="was not ready in 0 s"),
        start(tmp_path, "-c", HANG, port=free_port()) as server,
    ):
        server.wait_until_ready("/", 0)


def test_a_server_gets_the_callers_environment_and_the_given_variables(tmp_path):
    code = "import os; print(os.environ['ON_TOP'], 'PATH' in os.environ, flush=True); "
    with start(tmp_path, "-c", code + HANG, ON_TOP="yes") as server:
        assert read_first_line(server) == "yes True"


def test_a_server_gets_only_the_inherited_and_the_given_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACE", "here")
    monkeypatch.setenv("VLLM_SERVER_DEV_MODE", "1")
    code = "import os; print(*sorted(os.environ), os.environ['PLACE'], flush=True); "
    command, log = [sys.executable, "-c", code + HANG], tmp_path / "server.log"
    with running("it", command, {"ON_TOP": "yes"}, 1, log, inherited={"PLACE"}) as server:
        names = read_first_line(server).split()
    assert {"ON_TOP", "PLACE", "here"} <= set(names) <= {"LC_CTYPE", "ON_TOP", "PLACE", "here"}


def test_waiting_for_a_server_ends_when_the_stop_event_is_set(tmp_path):
    stopping = Event()
    stopping.set()
    with (
        pytest.raises(EngineError, match="stopped before it was ready"),
        start(tmp_path, "-c", HANG, port=free_port()) as server,
    ):
        server.wait_until_ready("/", 600, stopping)


@pytest.mark.compute
def test_a_server_ends_when_its_parent_process_is_killed(tmp_path):
    log = tmp_path / "server.log"
    code = f"""
import pathlib, sys, time
from agentworld.engine.process import running
with running("it", [sys.executable, "-c", {HANG!r}], {{}}, 1, pathlib.Path({str(log)!r})) as server:
    print(server.process.pid, flush=True)
    time.sleep(60)
"""
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], env=path, stdout=subprocess.PIPE) as parent:
        child = int(parent.stdout.readline())
        # From then on it ends with its parent: the wrapper has arranged that before.
        server = sys.executable.encode()
        wait_for(lambda: Path(f"/proc/{child}/cmdline").read_bytes().startswith(server))
        parent.kill()
    wait_for(lambda: not is_alive(child))
