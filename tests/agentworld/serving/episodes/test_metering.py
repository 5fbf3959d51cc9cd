"""Requests through a meter are counted, and otherwise unchanged."""

import asyncio
import itertools

import pytest

from agentworld.engine.base import Completion, CompletionRequest
from agentworld.engine.fake import FakeEngine
from agentworld.engine.replica import Replica
from agentworld.errors import EngineError
from agentworld.records.message import Message
from agentworld.records.simulator import Sampling
from agentworld.records.usage import Usage
from agentworld.serving.episodes.observing import MeteredEngine

MESSAGES = [Message(role="user", content="ls")]
REQUEST = CompletionRequest(MESSAGES, Sampling(), 7, "e")
ANSWER = Completion("besa", 100, 7, "stop", num_cached_tokens=40)


def meter_of(*answers, clock=None):
    """A meter of an engine with these answers; each reading of its clock adds a second."""
    responses = iter(answers)
    engine = FakeEngine(lambda messages: next(responses))
    return MeteredEngine(engine, clock or map(float, itertools.count()).__next__)


def ask(meter):
    return asyncio.run(meter.complete(REQUEST))


def test_a_new_meter_has_zero_usage():
    meter = meter_of()
    assert (meter.usage, meter.queued_seconds) == (Usage(), 0.0)


def test_a_meter_passes_request_and_answer_unchanged():
    engine = FakeEngine(lambda messages: ANSWER)
    assert ask(MeteredEngine(engine)) is ANSWER
    assert engine.requests == [REQUEST]


def test_the_tokens_and_the_time_of_all_requests_add_up():
    meter = meter_of(ANSWER, Completion("be", 10, 2, "stop"), ANSWER)
    for _ in range(3):
        ask(meter)
    assert meter.usage == Usage(210, 80, 16, 3.0)


def test_each_concurrent_request_is_counted():
    """Their seconds add up too: three concurrent requests of two seconds count as six."""
    arrivals, all_arrived = itertools.count(1), asyncio.Event()

    async def answer_when_all_arrived(_messages):
        if next(arrivals) == 3:
            all_arrived.set()
        await all_arrived.wait()
        return ANSWER

    times = iter([0.0, 0.0, 0.0, 2.0, 2.0, 2.0])
    meter = MeteredEngine(FakeEngine(answer_when_all_arrived), times.__next__)

    async def work():
        await asyncio.gather(*(meter.complete(REQUEST) for _ in range(3)))

    asyncio.run(work())
    assert meter.usage == Usage(300, 120, 21, 6.0)


def test_queue_time_is_not_counted_as_engine_time():
    meter = meter_of(ANSWER._replace(queued_seconds=0.75), ANSWER._replace(queued_seconds=0.5))
    for _ in range(2):
        ask(meter)
    assert (meter.usage.engine_seconds, meter.queued_seconds) == (0.75, 1.25)


@pytest.mark.parametrize("is_failing", [False, True])
def test_the_queue_time_of_a_waiting_request_is_counted_separately(is_failing):
    now = 0.0

    async def answer_in_a_second(_messages):
        nonlocal now
        await asyncio.sleep(0)
        now += 1.0
        if is_failing:
            raise EngineError("gone")
        return ANSWER

    def clock():
        return now

    replica = Replica("here", FakeEngine(answer_in_a_second), concurrency=1, clock=clock)
    meters = [MeteredEngine(replica, clock) for _ in range(3)]

    async def work():
        requests = (meter.complete(REQUEST) for meter in meters)
        await asyncio.gather(*requests, return_exceptions=True)

    asyncio.run(work())
    assert [meter.usage.engine_seconds for meter in meters] == [1.0, 1.0, 1.0]
    assert [meter.queued_seconds for meter in meters] == [0.0, 1.0, 2.0]


def test_the_time_of_a_failed_request_counts_as_engine_time():
    meter = meter_of(EngineError("gone"), ANSWER)
    with pytest.raises(EngineError, match="gone"):
        ask(meter)
    assert meter.usage == Usage(engine_seconds=1.0)
    ask(meter)
    assert meter.usage == Usage(100, 40, 7, 2.0)


def test_the_time_of_a_canceled_request_counts_as_engine_time():
    async def wait_forever(_messages):
        await asyncio.Event().wait()

    meter = MeteredEngine(FakeEngine(wait_forever), iter([0.0, 2.0]).__next__)

    async def work():
        task = asyncio.create_task(meter.complete(REQUEST))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert meter.usage == Usage(engine_seconds=2.0)
