"""The targets of aliases in a service's responses."""

import asyncio

import httpx
import pytest

from agentworld.client.simulator import SimulatorClient
from agentworld.errors import SimulatorError
from agentworld.records.base import Digest
from make.service import SIMULATOR, service


async def asked(client: SimulatorClient, name: str) -> Digest:
    try:
        return await client.meaning(name)
    finally:
        await client.close()


@pytest.mark.waits
def test_an_alias_resolves_to_its_simulator_and_an_ended_alias_is_not_found(tmp_path):
    there = service(tmp_path)
    there.ledger.aliases.set("terminal", SIMULATOR, "ada")
    assert asyncio.run(asked(there.client(), "terminal")) == SIMULATOR
    there.ledger.aliases.end("terminal", "bob")
    for name in ("terminal", "gone"):
        with pytest.raises(SimulatorError, match=f"there is no alias '{name}'") as refused:
            asyncio.run(asked(there.client(), name))
        assert refused.value.kind == "not-found"


@pytest.mark.parametrize("body", ['""', '"sha256:ab"', "[]", "{}", "<html>"])
def test_a_response_without_a_valid_digest_is_a_protocol_error(body):
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=body))
    told = "response to /aliases/terminal/simulator is invalid"
    with pytest.raises(SimulatorError, match=told) as refused:
        asyncio.run(asked(SimulatorClient("http://simulator", transport=transport), "terminal"))
    assert refused.value.kind == "protocol"
