import asyncio
import logging

import pytest

from agentworld.errors import StoreError
from agentworld.simulate.housekeeping import again_and_again


def test_work_is_done_again_and_again_and_ends_with_the_block():
    done = []

    async def work():
        done.append(1)

    async def live():
        async with again_and_again(work, 0.001):
            while len(done) < 3:
                await asyncio.sleep(0.001)
        ended = len(done)
        await asyncio.sleep(0.01)
        assert len(done) == ended

    asyncio.run(live())


@pytest.mark.parametrize(
    ("error", "told"),
    [(StoreError("the disk is full"), "the disk is full"), (KeyError("a"), "our mistake")],
)
def test_work_that_fails_is_told_and_tried_again(caplog, error, told):
    done = []

    async def work():
        done.append(1)
        if len(done) == 1:
            raise error

    async def live():
        async with again_and_again(work, 0.001):
            while len(done) < 2:
                await asyncio.sleep(0.001)

    with caplog.at_level(logging.WARNING):
        asyncio.run(live())
    assert told in caplog.text
