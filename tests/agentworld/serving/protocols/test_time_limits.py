import asyncio

import pytest

from agentworld.serving.protocols.time_limits import TimeLimit
from fakes.virtual_time import run


def test_a_block_over_its_limit_times_out_and_the_task_continues():
    async def work():
        limit = TimeLimit(0.02)
        with pytest.raises(TimeoutError), limit:
            await asyncio.sleep(60)
        assert not asyncio.current_task().cancelling()
        with limit:
            await asyncio.sleep(0)
        return "went on"

    assert run(work()) == "went on"


def test_the_limit_applies_to_each_block_and_not_to_their_sum():
    async def work():
        limit = TimeLimit(0.05)
        for _ in range(20):
            with limit:
                await asyncio.sleep(0.01)
        limit.end()
        return "went on"

    assert run(work()) == "went on"


def test_a_later_block_gets_its_full_time_despite_an_earlier_timer():
    async def work():
        limit = TimeLimit(0.2)
        with limit:
            pass
        await asyncio.sleep(0.15)
        with limit:  # the timer fires within it
            await asyncio.sleep(0.1)
        with pytest.raises(TimeoutError), limit:
            await asyncio.sleep(60)

    run(work())


def test_an_external_cancellation_is_not_suppressed():
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


def test_an_error_in_a_block_is_raised_unchanged():
    async def work():
        with TimeLimit(60):
            raise KeyError("besa")

    with pytest.raises(KeyError):
        run(work())


def test_an_ended_time_limit_leaves_no_timer():
    async def work():
        limit = TimeLimit(0.01)
        with limit:
            pass
        limit.end()
        await asyncio.sleep(0.05)
        assert not asyncio.current_task().cancelling()

    run(work())
