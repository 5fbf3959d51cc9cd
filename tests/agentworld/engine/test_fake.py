import asyncio

import pytest

from agentworld.engine.fake import FakeEngine
from agentworld.errors import EngineError
from agentworld.records.simulator import Sampling

ASKED = [{"role": "user", "content": "ls"}]


def test_a_fake_engine_says_what_its_function_says_and_keeps_what_it_was_asked():
    engine = FakeEngine(lambda messages: messages[-1]["content"].upper())
    assert asyncio.run(engine.complete(ASKED, Sampling(), 7)) == ("LS", 2, 2, "stop")
    assert engine.asked == [(ASKED, Sampling(), 7)]


def test_a_fake_engine_raises_the_error_that_its_function_returns():
    engine = FakeEngine(lambda messages: EngineError("gone"))
    with pytest.raises(EngineError, match="gone"):
        asyncio.run(engine.complete(ASKED, Sampling()))
