import asyncio

import httpx
import pytest

from agentworld.client.simulator import SimulatorClient
from agentworld.errors import SimulatorError


def test_between_requests_that_get_no_answer_are_seconds_and_never_hours(monkeypatch):
    pauses = []

    async def pass_by(seconds):
        pauses.append(seconds)

    def gone(request):
        raise httpx.ConnectError("gone", request=request)

    monkeypatch.setattr(asyncio, "sleep", pass_by)
    client = SimulatorClient("http://sim", transport=httpx.MockTransport(gone), attempts=2_000)
    with pytest.raises(SimulatorError, match="gave no answer"):
        asyncio.run(client.manifest())
    assert pauses[:3] == [0.1, 0.2, 0.4]
    assert pauses[7:] == [8.0] * 1_992
