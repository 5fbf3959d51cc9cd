import asyncio
import json

import httpx
import pytest

from agentworld.client.simulator import SimulatorClient
from agentworld.errors import SimulatorError
from fakes import virtual_time
from make.records import digest


@pytest.mark.compute
def test_the_pause_between_retries_grows_to_at_most_eight_seconds(monkeypatch):
    pauses = []

    async def skip(seconds):
        pauses.append(seconds)

    def fail(request):
        raise httpx.ConnectError("gone", request=request)

    monkeypatch.setattr(asyncio, "sleep", skip)
    client = SimulatorClient("http://sim", transport=httpx.MockTransport(fail), attempts=2_000)
    with pytest.raises(SimulatorError, match="did not answer"):
        asyncio.run(client.manifest())
    assert pauses[:3] == [0.1, 0.2, 0.4]
    assert pauses[7:] == [8.0] * 1_992


class StartingEngine:
    """An engine that is ready after a number of requests, each of which takes 45 seconds."""

    def __init__(self, num_questions, kind="starting"):
        self.kind, self.num_questions = kind, num_questions
        self.num_asked = 0

    async def __call__(self, _request):
        await asyncio.sleep(45)
        self.num_asked += 1
        if self.num_asked > self.num_questions:
            return httpx.Response(200, text=json.dumps(digest("answer")))
        error = {"kind": self.kind, "message": "none yet", "retryable": True}
        error["retry_after_seconds"] = 3
        return httpx.Response(503, json={"error": error})

    def ask(self, **settings):
        transport = httpx.MockTransport(self)
        client = SimulatorClient("http://sim", transport=transport, attempts=2, **settings)
        return virtual_time.run(client.meaning("stable"))


def test_requests_to_a_starting_engine_are_retried_within_start_seconds(caplog):
    engine = StartingEngine(10)
    assert engine.ask(start_seconds=600) == digest("answer")
    assert engine.num_asked == 11
    assert len(caplog.messages) == 10
    assert "none yet; retrying for at most" in caplog.text


def test_an_engine_that_does_not_start_within_start_seconds_is_a_failure():
    engine = StartingEngine(100)
    with pytest.raises(SimulatorError, match="none yet") as error:
        engine.ask(start_seconds=100)
    assert (error.value.kind, engine.num_asked) == ("starting", 3)


def test_with_zero_start_seconds_a_starting_engine_is_asked_once():
    engine = StartingEngine(1)
    with pytest.raises(SimulatorError):
        engine.ask(start_seconds=0)
    assert engine.num_asked == 1


def test_other_failures_are_retried_up_to_the_number_of_attempts():
    engine = StartingEngine(100, kind="engine")
    with pytest.raises(SimulatorError):
        engine.ask(start_seconds=600)
    assert engine.num_asked == 2


def test_each_retry_has_the_current_credential():
    engine, current = StartingEngine(1), iter("abc")
    headers = []

    async def answer(request):
        headers.append(request.headers["authorization"])
        if len(headers) == 1:
            raise httpx.ReadError("lost", request=request)
        return await engine(request)

    transport = httpx.MockTransport(answer)
    client = SimulatorClient("http://sim", credential=lambda: next(current), transport=transport)
    assert virtual_time.run(client.meaning("stable")) == digest("answer")
    assert headers == ["Bearer a", "Bearer b", "Bearer c"]
