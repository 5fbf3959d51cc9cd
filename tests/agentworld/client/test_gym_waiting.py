"""How an environment waits for its requests, and the effect of interrupts."""

import asyncio
import signal
import threading

import pytest

from agentworld.client.gym import SimulatorEnv, waiting
from agentworld.client.gym.waiting import WaitingRun
from agentworld.errors import InputError
from make.service import OPENING


@pytest.fixture
def interruptible():
    """Also where the tests were started in the background, which ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_step_may_be_repeated(serve):
    asked = []

    async def slow(_messages):
        asked.append(1)
        if len(asked) == 1:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            await asyncio.Event().wait()
        return "[0] ~"

    with SimulatorEnv(serve(slow).client(attempts=1), OPENING) as env:
        env.reset()
        with pytest.raises(KeyboardInterrupt):
            env.step("ls")
        assert env.step("ls")[-1]["step"] == 1


class NoClient:
    async def resume_run(self, _run):
        return None

    async def close(self):
        pass


def test_a_request_fails_if_another_thread_closes_the_environment():
    run, begun = WaitingRun(NoClient(), "a run"), threading.Event()

    async def endless():
        begun.set()
        await asyncio.Event().wait()

    def close():
        begun.wait()
        run.close()

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises(InputError, match="this environment is closed"):
        run.ask(endless)
    thread.join()


@pytest.mark.compute
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_at_any_time_leaves_no_pending_request():
    async def interrupting():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        await asyncio.Event().wait()

    async def num_requests():
        return len(asyncio.all_tasks()) - 1

    run = WaitingRun(NoClient(), "a run")
    for _ in range(1000):
        with pytest.raises(KeyboardInterrupt):
            run.ask(interrupting)
    assert run.ask(num_requests) == 0
    run.close()


def test_a_step_may_take_longer_than_one_wait_interval(serve, monkeypatch):
    monkeypatch.setattr(waiting, "_PART_SECONDS", 0.01)

    async def slow(_messages):
        await asyncio.sleep(0.1)
        return "[0] ~"

    with SimulatorEnv(serve(slow).client(attempts=1), OPENING) as env:
        env.reset()
        assert env.step("ls")[0] == "[0] ~"
        with pytest.raises(TimeoutError, match="of the work"):
            env._waiting.ask(times_out)


async def times_out():
    raise TimeoutError("of the work")
