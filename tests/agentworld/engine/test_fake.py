import asyncio

import pytest

from agentworld.engine.base import Completion, CompletionRequest
from agentworld.engine.fake import FakeEngine
from agentworld.errors import EngineError
from agentworld.records.simulator import Sampling

REQUEST = CompletionRequest([{"role": "user", "content": "ls"}], Sampling(), 7, "e")


def complete(engine):
    return asyncio.run(engine.complete(REQUEST))


def test_a_fake_engine_answers_with_its_function_and_records_requests():
    engine = FakeEngine(lambda messages: messages[-1]["content"].upper())
    assert complete(engine) == Completion("LS", 2, 2, "stop")
    assert engine.requests == [REQUEST]


def test_a_fake_engine_raises_the_error_that_its_function_returns():
    engine = FakeEngine(lambda messages: EngineError("gone"))
    with pytest.raises(EngineError, match="gone"):
        complete(engine)


def test_a_fake_engine_returns_its_functions_completion_unchanged():
    completion = Completion("besa", 3, 2, "stop", mean_logprob=-0.1)
    assert complete(FakeEngine(lambda messages: completion)) == completion


def test_a_fake_engine_awaits_an_async_function():
    async def answer(_messages):
        await asyncio.sleep(0)
        return "besa"

    assert complete(FakeEngine(answer)).text == "besa"
