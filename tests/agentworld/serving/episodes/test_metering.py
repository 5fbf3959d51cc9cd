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

ASKED = [Message(role="user", content="ls")]
REQUEST = CompletionRequest(ASKED, Sampling(), 7, "e")
SAID = Completion("besa", 100, 7, "stop", num_cached_tokens=40)


def metered(*answers, clock=None):
    """A meter over an engine that gives these answers; its clock ticks a second at each look."""
    told = iter(answers)
    engine = FakeEngine(lambda messages: next(told))
    return MeteredEngine(engine, clock or map(float, itertools.count()).__next__)


def ask(meter):
    return asyncio.run(meter.complete(REQUEST))


def test_a_new_meter_has_zero_usage():
    meter = metered()
    assert (meter.usage, meter.queued_seconds) == (Usage(), 0.0)


def test_a_meter_passes_request_and_answer_unchanged():
    engine = FakeEngine(lambda messages: SAID)
    assert ask(MeteredEngine(engine)) is SAID
    assert engine.requests == [REQUEST]


def test_the_tokens_and_the_time_of_all_requests_add_up():
    meter = metered(SAID, Completion("be", 10, 2, "stop"), SAID)
    for _ in range(3):
        ask(meter)
    assert meter.usage == Usage(210, 80, 16, 3.0)


def test_each_concurrent_request_is_counted():
    """Their seconds add up too: an engine that answers three works three times as long."""
    came, all_came = itertools.count(1), asyncio.Event()

    async def when_all_are_there(_messages):
        if next(came) == 3:
            all_came.set()
        await all_came.wait()
        return SAID

    times = iter([0.0, 0.0, 0.0, 2.0, 2.0, 2.0])
    meter = MeteredEngine(FakeEngine(when_all_are_there), times.__next__)

    async def work():
        await asyncio.gather(*(meter.complete(REQUEST) for _ in range(3)))

    asyncio.run(work())
    assert meter.usage == Usage(300, 120, 21, 6.0)


def test_queue_time_is_not_counted_as_engine_time():
    meter = metered(SAID._replace(queued_seconds=0.75), SAID._replace(queued_seconds=0.5))
    for _ in range(2):
        ask(meter)
    assert (meter.usage.engine_seconds, meter.queued_seconds) == (0.75, 1.25)


@pytest.mark.parametrize("fails", [False, True])
def test_the_queue_time_of_a_waiting_request_is_counted_separately(fails):
    now = 0.0

    async def takes_a_second(_messages):
        nonlocal now
        await asyncio.sleep(0)
        now += 1.0
        if fails:
            raise EngineError("gone")
        return SAID

    def clock():
        return now

    admitted = Replica("here", FakeEngine(takes_a_second), concurrency=1, clock=clock)
    meters = [MeteredEngine(admitted, clock) for _ in range(3)]

    async def work():
        asked = (meter.complete(REQUEST) for meter in meters)
        await asyncio.gather(*asked, return_exceptions=True)

    asyncio.run(work())
    assert [meter.usage.engine_seconds for meter in meters] == [1.0, 1.0, 1.0]
    assert [meter.queued_seconds for meter in meters] == [0.0, 1.0, 2.0]


def test_the_time_of_a_failed_request_counts_as_engine_time():
    meter = metered(EngineError("gone"), SAID)
    with pytest.raises(EngineError, match="gone"):
        ask(meter)
    assert meter.usage == Usage(engine_seconds=1.0)
    ask(meter)
    assert meter.usage == Usage(100, 40, 7, 2.0)


def test_the_time_of_a_canceled_request_counts_as_engine_time():
    async def never(_messages):
        await asyncio.Event().wait()

    meter = MeteredEngine(FakeEngine(never), iter([0.0, 2.0]).__next__)

    async def work():
        asked = asyncio.create_task(meter.complete(REQUEST))
        await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    asyncio.run(work())
    assert meter.usage == Usage(engine_seconds=2.0)
