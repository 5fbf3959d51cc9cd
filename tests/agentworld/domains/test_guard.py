"""The processes that a simulated training may and may not start."""

import asyncio
import multiprocessing
import os
import shutil
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agentworld.domains import live
from agentworld.domains.guard import LiveEnvironmentRefused
from agentworld.domains.live import no_environment, open_environment
from agentworld.domains.sandbox import SandboxLimits, open_sandbox
from make.live_domains import ScriptedDomain, registered

BASH = shutil.which("bash") or "/bin/bash"
TRUE = shutil.which("true") or "/bin/true"
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"


def open_once(name: str) -> None:
    async def open_and_close() -> None:
        async with open_environment(name):
            pass

    asyncio.run(open_and_close())


def start(*command: str) -> None:
    subprocess.run(command, check=False, capture_output=True)


ATTEMPTS = {
    "bash": lambda: start("bash", "-c", "true"),
    "bash by its path": lambda: start(BASH, "-c", "true"),
    "a shell of a line": lambda: subprocess.run("true", shell=True, check=False),  # noqa: S602
    "another name for it": lambda: subprocess.run(["mine"], executable=BASH, check=False),
    "bytes": lambda: subprocess.run([BASH.encode(), b"-c", b"true"], check=False),
    "a path": lambda: subprocess.run([Path(BASH), "-c", "true"], check=False),
    "os.system": lambda: os.system("true"),  # noqa: S605
    "os.popen": lambda: os.popen("true").close(),  # noqa: S605
    "os.posix_spawn": lambda: os.posix_spawn(BASH, ["bash", "-c", "true"], {}),
    "os.posix_spawnp": lambda: os.posix_spawnp("bash", ["bash", "-c", "true"], {}),
    "os.execv": lambda: os.execv(BASH, ["bash", "-c", "true"]),
    "env": lambda: start("env", "bash", "-c", "true"),
    "a wrapper": lambda: start("setpriv", "--pdeathsig", "TERM", "bash", "-c", "true"),
    "two wrappers": lambda: start("nice", "-n", "5", "setsid", sys.executable, "server.py"),
    "chromium": lambda: start(CHROMIUM, "--version"),
    "node": lambda: start("node", "driver.js"),
    "npx": lambda: start("npx", "-y", "@modelcontextprotocol/server-filesystem"),
    "uvx": lambda: start("uvx", "mcp-server-fetch"),
    "a server of tools": lambda: start("mcp-server-fetch"),
    "docker": lambda: start("docker", "run", "mcp/fetch"),
    "bwrap": lambda: start("/usr/bin/bwrap", "true"),
    "python server.py": lambda: start("python", "server.py"),
    "this python": lambda: start(sys.executable, "server.py", "--stdio"),
    "a module of a server": lambda: start(sys.executable, "-m", "mcp_server_time"),
    "code": lambda: start(sys.executable, "-c", "import os; os.system('true')"),
}


async def start_with_asyncio() -> None:
    await asyncio.create_subprocess_exec(BASH, "-c", "true")


ATTEMPTS["asyncio"] = lambda: asyncio.run(start_with_asyncio())


@pytest.mark.parametrize("attempt", list(ATTEMPTS))
def test_a_program_that_runs_commands_or_serves_tools_is_refused_and_counted(attempt):
    with no_environment() as guard:
        with pytest.raises(LiveEnvironmentRefused, match="a simulated training may not start"):
            ATTEMPTS[attempt]()
        assert guard.num_refused == 1


@pytest.mark.parametrize("name", live._KINDS.names)
def test_the_guard_refuses_to_open_an_environment(name):
    with no_environment() as guard:
        with pytest.raises(LiveEnvironmentRefused, match="a live environment"):
            open_once(name)
        assert guard.num_refused == 1


def test_the_guard_refuses_an_environment_that_starts_no_program(monkeypatch):
    class UnopenedDomain(ScriptedDomain):
        @asynccontextmanager
        async def open(self, _):
            raise AssertionError("it was opened")
            yield

    registered(monkeypatch, "unopened", UnopenedDomain())
    with no_environment() as guard, pytest.raises(LiveEnvironmentRefused):
        open_once("unopened")
    assert guard.num_refused == 1


def test_the_launchers_of_a_domain_are_refused(monkeypatch):
    registered(monkeypatch, "mine", ScriptedDomain(launchers=frozenset({"true"})))
    with no_environment() as guard:
        with pytest.raises(LiveEnvironmentRefused, match="may not start true"):
            start(TRUE)
        assert guard.num_refused == 1


def test_a_sandbox_cannot_be_opened_directly(monkeypatch):
    monkeypatch.setattr("agentworld.domains.sandbox.check_sandbox", lambda: None)
    with no_environment() as guard, pytest.raises(LiveEnvironmentRefused):
        open_sandbox(["/bin/true"], SandboxLimits())
    assert guard.num_refused == 1


def test_a_spawned_shell_ends_before_running_its_command(tmp_path):
    with no_environment():
        exit_code = os.spawnv(os.P_WAIT, BASH, ["bash", "-c", f"touch {tmp_path}/proof"])
    assert exit_code == 127
    assert not (tmp_path / "proof").exists()


def test_a_program_started_in_a_thread_is_refused():
    async def start_in_thread() -> None:
        await asyncio.to_thread(start, BASH, "-c", "true")

    with no_environment() as guard, pytest.raises(LiveEnvironmentRefused):
        asyncio.run(start_in_thread())
    assert guard.num_refused == 1


def test_a_compiler_and_other_programs_start():
    compiler = shutil.which("cc") or shutil.which("g++")
    with no_environment() as guard:
        start(TRUE)
        if compiler:
            subprocess.run([compiler, "--version"], check=True, capture_output=True)
    assert guard.num_refused == 0


@pytest.mark.waits
def test_an_agentworld_module_starts():
    with no_environment() as guard:
        command = [sys.executable, "-m", "agentworld.errors"]
        subprocess.run(command, env={"PYTHONPATH": os.pathsep.join(sys.path)}, check=True)
    assert guard.num_refused == 0


def test_a_worker_of_a_library_starts():
    worker = Path(sys.prefix, "lib/python/torch/_inductor/compile_worker/__main__.py")
    with no_environment() as guard:
        start(sys.executable, "-u", str(worker))
        start(sys.executable, "-c", "from multiprocessing import resource_tracker")
    assert guard.num_refused == 0


@pytest.mark.waits
def test_a_worker_of_multiprocessing_starts():
    context = multiprocessing.get_context("spawn")
    with no_environment() as guard, context.Pool(1) as pool:
        assert pool.apply(int, ("7",)) == 7
    assert guard.num_refused == 0


def test_all_programs_are_allowed_after_the_guard():
    with no_environment() as guard:
        pass
    assert subprocess.run([BASH, "-c", "exit 3"], check=False).returncode == 3
    assert os.system("true") == 0  # noqa: S605
    with pytest.raises(FileNotFoundError):
        start("/nowhere/bwrap")
    assert guard.num_refused == 0


def test_an_environment_opens_after_the_guard(monkeypatch):
    registered(monkeypatch, "mine", ScriptedDomain())
    with no_environment() as guard:
        pass
    open_once("mine")
    assert guard.num_refused == 0


def test_an_error_in_the_block_ends_the_guard():
    with pytest.raises(KeyError), no_environment():
        raise KeyError
    assert subprocess.run([BASH, "-c", "true"], check=False).returncode == 0


def test_a_nested_guard_counts_separately_and_the_outer_guard_stays_active():
    with no_environment() as outer:
        with no_environment() as inner, pytest.raises(LiveEnvironmentRefused):
            start(BASH)
        assert (outer.num_refused, inner.num_refused) == (0, 1)
        with pytest.raises(LiveEnvironmentRefused):
            start(BASH)
        assert (outer.num_refused, inner.num_refused) == (1, 1)
    start(TRUE)
    assert subprocess.run([BASH, "-c", "true"], check=False).returncode == 0
