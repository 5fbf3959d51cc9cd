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
    batches, first_started, may_continue = [], threading.Event(), threading.Event()

    def append(writes):
        batches.append([write.step.number for write in writes])
        first_started.set()
        may_continue.wait(DEADLINE)

    async def work():
        writer = Writer(append)
        first_write = asyncio.create_task(writer.write(step(1)))
        await asyncio.to_thread(first_started.wait, DEADLINE)
        other_writes = [asyncio.create_task(writer.write(step(number))) for number in (2, 3, 4)]
        await asyncio.sleep(0)
        may_continue.set()
        await asyncio.gather(first_write, *other_writes)

    asyncio.run(work())
    assert batches == [[1], [2, 3, 4]]


def test_nearly_simultaneous_steps_share_one_transaction():
    batches = []

    async def arrive(writer, number):
        for _ in range(3 * number):  # turns of the event loop, like those that read a request
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
    batch_sizes = []

    def append(writes):
        batch_sizes.append(len(writes))
        raise StoreError("the ledger is locked")

    assert {type(outcome) for outcome in write_all(append, [1, 2, 3])} == {StoreError}
    assert batch_sizes == [3]


def test_an_unexpected_error_is_raised_to_every_caller():
    def append(writes):
        raise ZeroDivisionError(len(writes))

    assert {type(outcome) for outcome in write_all(append, [1, 2])} == {ZeroDivisionError}


def test_a_canceled_write_is_still_completed():
    stored = []

    async def work():
        writer = Writer(stored.extend)
        task = asyncio.create_task(writer.write(step(1)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await writer.write(step(2))

    asyncio.run(work())
    assert [write.step.number for write in stored] == [1, 2]


def test_on_written_is_called_only_for_stored_steps_and_before_the_caller_resumes():
    events = []

    def append(writes):
        if any(write.step.number == 2 for write in writes):
            raise Conflict("step 2 is there already")

    async def write(writer, number):
        await writer.write(step(number), on_written=lambda: events.append(f"told {number}"))
        events.append(f"written {number}")

    async def work():
        writer = Writer(append)
        task, *later_tasks = (asyncio.create_task(write(writer, number)) for number in (1, 2, 3))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(*later_tasks, return_exceptions=True)

    asyncio.run(work())
    assert events == ["told 1", "told 3", "written 3"]
