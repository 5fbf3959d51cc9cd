import asyncio

import pytest

from agentworld.errors import ClusterError
from agentworld_operator import work_queue
from agentworld_operator.work_queue import WorkQueue
from fakes.virtual_time import run


def run_queue(names, do, *, workers=2, until):
    """Runs a queue with these names until a condition holds."""

    async def begin():
        queue = WorkQueue(do, workers=workers)
        for name in names:
            queue.add(name)
        task = asyncio.create_task(queue.run())
        async with asyncio.timeout(5):
            while not until():
                await asyncio.sleep(0.001)
        task.cancel()
        return queue

    return run(begin())


def test_a_name_that_is_added_twice_is_worked_on_once():
    processed = []

    async def do(name):
        processed.append(name)

    run_queue(["a", "a", "b"], do, until=lambda: len(processed) >= 2)
    assert sorted(processed) == ["a", "b"]


def test_a_name_has_one_worker_at_a_time_and_is_repeated_if_added_meanwhile():
    active, processed = set(), []

    async def begin():
        async def do(name):
            assert name not in active
            active.add(name)
            if not processed:
                queue.add(name)
            await asyncio.sleep(0.005)
            active.discard(name)
            processed.append(name)

        queue = WorkQueue(do, workers=4)
        queue.add("a")
        task = asyncio.create_task(queue.run())
        await asyncio.sleep(0.05)
        task.cancel()

    run(begin())
    assert processed == ["a", "a"]


@pytest.mark.parametrize("error", [ClusterError("gone"), ValueError("a mistake of ours")])
def test_a_failed_name_is_retried_and_does_not_delay_other_names(monkeypatch, error):
    monkeypatch.setattr(work_queue, "_FIRST_PAUSE", 0.001)
    processed = []

    async def do(name):
        processed.append(name)
        if name == "bad" and processed.count("bad") < 3:
            raise error

    run_queue(["bad", "good"], do, workers=1, until=lambda: processed.count("bad") == 3)
    assert processed[:2] == ["bad", "good"]


def moments(seconds, pauses, *, adds=()):
    """The times of the work on a name that returns these pauses, and is also added at these
    seconds.
    """

    async def begin():
        loop, calls = asyncio.get_running_loop(), []

        async def do(_name):
            calls.append(loop.time())
            return pauses.pop(0) if pauses else None

        queue = WorkQueue(do, workers=2)
        for moment in (0, *adds):
            loop.call_later(moment, queue.add, "a")
        task = asyncio.create_task(queue.run())
        await asyncio.sleep(seconds)
        task.cancel()
        return calls

    return run(begin())


def test_a_name_is_worked_on_again_after_the_seconds_that_its_work_returns():
    assert moments(60, [5, 7]) == [0, 5, 12]


def test_work_before_its_due_time_reschedules_the_next_work():
    assert moments(60, [10, 10], adds=[4]) == [0, 4, 14]
    assert moments(60, [10, None], adds=[4]) == [0, 4]
