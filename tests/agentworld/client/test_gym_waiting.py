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
    """Makes SIGINT an interrupt, also in tests started in the background, which ignore it."""
    previous_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous_handler)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_step_may_be_repeated(serve):
    requests = []

    async def answer(_messages):
        requests.append(1)
        if len(requests) == 1:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            await asyncio.Event().wait()
        return "[0] ~"

    with SimulatorEnv(serve(answer).client(attempts=1), OPENING) as env:
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
    run, start = WaitingRun(NoClient(), "a run"), threading.Event()

    async def wait_forever():
        start.set()
        await asyncio.Event().wait()

    def close():
        start.wait()
        run.close()

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises(InputError, match="this environment is closed"):
        run.ask(wait_forever)
    thread.join()


@pytest.mark.compute
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_at_any_time_leaves_no_pending_request():
    async def interrupt():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        await asyncio.Event().wait()

    async def num_requests():
        return len(asyncio.all_tasks()) - 1

    run = WaitingRun(NoClient(), "a run")
    for _ in range(1000):
        with pytest.raises(KeyboardInterrupt):
            run.ask(interrupt)
    assert run.ask(num_requests) == 0
    run.close()


def test_a_step_may_take_longer_than_one_wait_interval(serve, monkeypatch):
    monkeypatch.setattr(waiting, "_PART_SECONDS", 0.01)

    async def answer(_messages):
        await asyncio.sleep(0.1)
        return "[0] ~"

    with SimulatorEnv(serve(answer).client(attempts=1), OPENING) as env:
        env.reset()
        assert env.step("ls")[0] == "[0] ~"
        with pytest.raises(TimeoutError, match="of the work"):
            env._waiting.ask(time_out)


async def time_out():
    raise TimeoutError("of the work")
