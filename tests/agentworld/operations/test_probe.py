import asyncio

import httpx
import pytest

import make.service
from agentworld.client.simulator import SimulatorClient
from agentworld.errors import EngineError, SimulatorError
from agentworld.operations import probe as probe_module
from agentworld.operations.probe import probe
from make import records
from waiting import DEADLINE

WEIGHTS = records.digest("weights")


def probe_run(store, answer=make.service.shell):
    """Probes a service; returns the probe's run in its ledger."""
    service = make.service.service(store, answer)
    try:
        asyncio.run(probe(service.client(simulator=service.simulator, attempts=1), WEIGHTS))
    finally:
        (run,) = service.ledger.runs()
    return run


def test_a_probe_takes_one_step_and_closes_its_run(tmp_path):
    run = probe_run(tmp_path)
    assert (run.opening.purpose, run.num_steps, run.final_weights) == ("evaluation", 1, WEIGHTS)


def test_a_probe_accepts_an_answer_without_an_observation(tmp_path):
    run = probe_run(tmp_path, lambda _: "")
    assert (run.num_steps, run.final_weights) == (0, WEIGHTS)


def test_a_probe_raises_if_the_engine_fails(tmp_path):
    def fail(_):
        raise EngineError("gone", retryable=False)

    with pytest.raises(SimulatorError, match="gone"):
        probe_run(tmp_path, fail)


def test_an_answer_of_another_simulator_is_refused(tmp_path):
    service = make.service.service(tmp_path)
    with pytest.raises(SimulatorError, match="answered instead of"):
        asyncio.run(probe(service.client(simulator=records.digest("another")), WEIGHTS))


def test_closing_a_probe_on_an_unreachable_service_is_limited_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(probe_module, "_CLOSING_SECONDS", 0.05)
    service = make.service.service(tmp_path)
    app = httpx.ASGITransport(service.app, raise_app_exceptions=False)

    async def respond(request):
        if request.url.path == "/runs":
            return await app.handle_async_request(request)
        raise httpx.ConnectError("gone", request=request)

    async def ask():
        transport = httpx.MockTransport(respond)
        client = SimulatorClient("http://simulator", transport=transport, attempts=1_000_000)
        async with asyncio.timeout(0.1):
            await probe(client, WEIGHTS)

    async def wait_for_probe():
        task = asyncio.ensure_future(ask())
        done_tasks, _ = await asyncio.wait({task}, timeout=DEADLINE)
        task.cancel()
        return done_tasks

    (task,) = asyncio.run(wait_for_probe())
    assert isinstance(task.exception(), TimeoutError)
