import asyncio

import pytest

from agentworld.serving.protocols.time_limits import TimeLimit
from fakes.virtual_time import run


def test_what_takes_too_long_is_ended_and_the_task_goes_on():
    async def work():
        patience = TimeLimit(0.02)
        with pytest.raises(TimeoutError), patience:
            await asyncio.sleep(60)
        assert not asyncio.current_task().cancelling()
        with patience:
            await asyncio.sleep(0)
        return "went on"

    assert run(work()) == "went on"


def test_many_short_things_are_not_one_long_one():
    async def work():
        patience = TimeLimit(0.05)
        for _ in range(20):
            with patience:
                await asyncio.sleep(0.01)
        patience.end()
        return "went on"

    assert run(work()) == "went on"


def test_what_began_after_the_timer_has_all_of_its_time():
    async def work():
        patience = TimeLimit(0.2)
        with patience:
            pass
        await asyncio.sleep(0.15)
        with patience:  # the timer fires within it
            await asyncio.sleep(0.1)
        with pytest.raises(TimeoutError), patience:
            await asyncio.sleep(60)

    run(work())


def test_who_is_cancelled_by_others_is_cancelled():
    async def work():
        async def wait():
            with TimeLimit(60):
                await asyncio.sleep(60)

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work())


def test_an_error_in_it_stays_what_it_is():
    async def work():
        with TimeLimit(60):
            raise KeyError("besa")

    with pytest.raises(KeyError):
        run(work())


def test_what_was_ended_leaves_no_timer():
    async def work():
        patience = TimeLimit(0.01)
        with patience:
            pass
        patience.end()
        await asyncio.sleep(0.05)
        assert not asyncio.current_task().cancelling()

    run(work())
