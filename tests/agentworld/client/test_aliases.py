"""The targets of aliases in a service's responses."""

import asyncio

import httpx
import pytest

from agentworld.client.simulator import SimulatorClient
from agentworld.errors import SimulatorError
from agentworld.records.base import Digest
from make.service import SIMULATOR, service


async def resolve(client: SimulatorClient, name: str) -> Digest:
    try:
        return await client.meaning(name)
    finally:
        await client.close()


@pytest.mark.waits
def test_an_alias_resolves_to_its_simulator_and_an_ended_alias_is_not_found(tmp_path):
    server = service(tmp_path)
    server.ledger.aliases.set("terminal", SIMULATOR, "ada")
    assert asyncio.run(resolve(server.client(), "terminal")) == SIMULATOR
    server.ledger.aliases.end("terminal", "bob")
    for name in ("terminal", "gone"):
        with pytest.raises(SimulatorError, match=f"there is no alias '{name}'") as error:
            asyncio.run(resolve(server.client(), name))
        assert error.value.kind == "not-found"


@pytest.mark.parametrize("body", ['""', '"sha256:ab"', "[]", "{}", "<html>"])
def test_a_response_without_a_valid_digest_is_a_protocol_error(body):
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=body))
    problem = "response to /aliases/terminal/simulator is invalid"
    with pytest.raises(SimulatorError, match=problem) as error:
        asyncio.run(resolve(SimulatorClient("http://simulator", transport=transport), "terminal"))
    assert error.value.kind == "protocol"
