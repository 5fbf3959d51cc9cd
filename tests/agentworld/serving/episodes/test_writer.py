import asyncio
import threading

import pytest

from agentworld.errors import Conflict, StoreError
from agentworld.ledger.writes import NewStep
from agentworld.serving.episodes.writer import Writer
from make import records
from waiting import DEADLINE


def step(number):
    return NewStep("r", records.episode("[0] ~").steps[0]._replace(number=number))


def write_all(append, numbers):
    async def work():
        writer = Writer(append)
        writes = (writer.write(step(number)) for number in numbers)
        return await asyncio.gather(*writes, return_exceptions=True)

    return asyncio.run(work())


def test_steps_queued_during_a_write_share_the_next_transaction():
    batches, first_is_in, go_on = [], threading.Event(), threading.Event()

    def append(writes):
        batches.append([write.step.number for write in writes])
        first_is_in.set()
        go_on.wait(DEADLINE)

    async def work():
        writer = Writer(append)
        first = asyncio.create_task(writer.write(step(1)))
        await asyncio.to_thread(first_is_in.wait, DEADLINE)
        others = [asyncio.create_task(writer.write(step(number))) for number in (2, 3, 4)]
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(first, *others)

    asyncio.run(work())
    assert batches == [[1], [2, 3, 4]]


def test_nearly_simultaneous_steps_share_one_transaction():
    batches = []

    async def arrive(writer, number):
        for _ in range(3 * number):  # turns of the loop, as a request takes them to be read
            await asyncio.sleep(0)
        await writer.write(step(number))

    async def work():
        writer = Writer(lambda writes: batches.append(len(writes)))
        await asyncio.gather(*(arrive(writer, number) for number in range(4)))

    asyncio.run(work())
    assert batches == [4]


def test_a_step_is_durable_when_its_writer_returns():
    stored = []

    async def work():
        writer = Writer(stored.extend)
        await writer.write(step(1))
        assert [write.step.number for write in stored] == [1]
        await writer.write(step(2))
        assert [write.step.number for write in stored] == [1, 2]

    asyncio.run(work())


def test_a_conflicting_step_does_not_fail_the_rest_of_its_batch():
    stored = []

    def append(writes):
        if any(write.step.number == 2 for write in writes):
            raise Conflict("step 2 is there already")
        stored.extend(write.step.number for write in writes)

    outcomes = write_all(append, [1, 2, 3])
    assert [type(outcome) for outcome in outcomes] == [type(None), Conflict, type(None)]
    assert stored == [1, 3]


def test_a_store_error_fails_the_whole_batch_after_one_attempt():
    asked = []

    def append(writes):
        asked.append(len(writes))
        raise StoreError("the ledger is locked")

    assert {type(outcome) for outcome in write_all(append, [1, 2, 3])} == {StoreError}
    assert asked == [3]


def test_an_unexpected_error_is_raised_to_every_caller():
    def append(writes):
        raise ZeroDivisionError(len(writes))

    assert {type(outcome) for outcome in write_all(append, [1, 2])} == {ZeroDivisionError}


def test_a_canceled_write_is_still_completed():
    stored = []

    async def work():
        writer = Writer(stored.extend)
        waiting = asyncio.create_task(writer.write(step(1)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await writer.write(step(2))

    asyncio.run(work())
    assert [write.step.number for write in stored] == [1, 2]


def test_on_written_is_called_only_for_stored_steps_and_before_the_caller_resumes():
    heard = []

    def append(writes):
        if any(write.step.number == 2 for write in writes):
            raise Conflict("step 2 is there already")

    async def write(writer, number):
        await writer.write(step(number), on_written=lambda: heard.append(f"told {number}"))
        heard.append(f"written {number}")

    async def work():
        writer = Writer(append)
        forgotten, *others = (asyncio.create_task(write(writer, number)) for number in (1, 2, 3))
        await asyncio.sleep(0)
        forgotten.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    asyncio.run(work())
    assert heard == ["told 1", "told 3", "written 3"]
