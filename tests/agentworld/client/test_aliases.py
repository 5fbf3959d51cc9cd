"""What a service says that a name means."""

import asyncio

import httpx
import pytest

from agentworld.client.simulator import SimulatorClient
from agentworld.errors import SimulatorError
from agentworld.records.alias import AliasChange
from make_service import SIMULATOR, service


async def asked(client: SimulatorClient, name: str) -> list[AliasChange]:
    try:
        return await client.alias(name)
    finally:
        await client.close()


@pytest.mark.slow
def test_a_name_has_its_history_and_one_that_nobody_gave_is_not_found(tmp_path):
    there = service(tmp_path)
    for by in ("ada", "bob"):
        there.ledger.aliases.set("terminal", SIMULATOR, by)
    told = asyncio.run(asked(there.client(), "terminal"))
    assert [each.set_by for each in told] == ["ada", "bob"]
    assert {each.simulator for each in told} == {SIMULATOR}
    with pytest.raises(SimulatorError, match="there is no alias 'gone'") as refused:
        asyncio.run(asked(there.client(), "gone"))
    assert refused.value.kind == "not-found"


@pytest.mark.parametrize("body", ["[]", "{}", "<html>"])
def test_what_is_no_history_is_no_answer(body):
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=body))
    with pytest.raises(SimulatorError, match="answer to /aliases/terminal is none") as refused:
        asyncio.run(asked(SimulatorClient("http://simulator", transport=transport), "terminal"))
    assert refused.value.kind == "protocol"
