"""An engine that ends by itself is restarted as long as its starts succeed."""

import os
import signal
import sys
from contextlib import contextmanager

import pytest

from agentworld.engine.process import free_port, running
from agentworld.engine.server import ServedEngine
from agentworld.engine.supervised import supervise
from agentworld.errors import EngineError, InputError
from agentworld.records.simulator import Sampling
from waiting import wait_for

SLEEP_COMMAND = [sys.executable, "-c", "import time; time.sleep(60)"]
EXIT_COMMAND = [sys.executable, "-c", "print('no memory')"]


class Engines:
    """Starts engines with the test's commands in order, and repeats the last command."""

    def __init__(self, folder, *commands):
        self.folder = folder
        self.commands = list(commands)
        self.started = []

    @contextmanager
    def start(self, stopping):
        port = free_port()
        command = self.commands.pop(0) if len(self.commands) > 1 else self.commands[0]
        with running("the engine", command, {}, port, self.folder / "engine.log") as server:
            if command is not SLEEP_COMMAND:
                server.wait_until_ready("/", 600, stopping)
            self.started.append(server.process)
            fields = "m", "vllm", "vllm 1", Sampling(), 1
            yield ServedEngine(server.url, *fields, server)

    def kill(self):
        os.kill(self.started[-1].pid, signal.SIGKILL)


@pytest.mark.waits
def test_an_ended_engine_is_restarted_and_both_events_are_logged(tmp_path, caplog):
    engines = Engines(tmp_path, SLEEP_COMMAND)
    with supervise(engines.start) as engine:
        for number in (1, 2):
            engines.kill()
            wait_for(lambda number=number: len(engines.started) == number + 1)
        engine.check()
    assert all(process.poll() is not None for process in engines.started)
    messages = [record.getMessage().partition(";")[0] for record in caplog.records]
    assert messages == ["the engine ended with status -9", "the engine answers again"] * 2


@pytest.mark.waits
def test_an_engine_that_cannot_restart_ends_the_block_with_the_reason(tmp_path):
    engines = Engines(tmp_path, SLEEP_COMMAND, EXIT_COMMAND)

    def work():
        with supervise(engines.start) as engine:
            engines.kill()
            wait_for(engine.check)

    with pytest.raises(EngineError, match=r"the engine ended with status 0; (.|\n)*no memory"):
        work()


@pytest.mark.waits
def test_an_error_at_an_engines_first_start_is_raised():
    @contextmanager
    def fail_to_start(_stopping):
        raise InputError("another file")
        yield

    with pytest.raises(InputError, match="another file"), supervise(fail_to_start):
        pass


@pytest.mark.waits
def test_leaving_the_block_does_not_wait_for_an_engines_restart(tmp_path):
    command = [sys.executable, "-c", "print('starting', flush=True); import time; time.sleep(60)"]
    engines = Engines(tmp_path, SLEEP_COMMAND, command)
    with supervise(engines.start) as engine:
        engines.kill()
        wait_for(lambda: "starting" in (tmp_path / "engine.log").read_text())
        engine.check()
    assert len(engines.started) == 1
