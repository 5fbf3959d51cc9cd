"""Structured content over MCP: it matches the output schema of its tool, or is an error."""

import asyncio

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agentworld.domains.base import domain_of
from make import records
from make.service import listening


@pytest.fixture(params=["legacy", "auto"])
def talk(request):
    """A function that returns the result of `act` with a client of a new episode."""

    def play(act, service, **opening):
        episode = service.reset(**opening)

        async def converse(url):
            transport = streamable_http_client(f"{url}/episodes/{episode}/mcp")
            async with Client(transport, mode=request.param) as client:
                return await act(client)

        with listening(service.transport.app) as url:
            return episode, asyncio.run(converse(url))

    return play


@pytest.mark.compute
def test_a_simulator_of_the_mcp_domain_offers_the_tools_of_that_domain(serve, talk):
    service = serve(domains=records.pinned_domains("mcp"))
    _, listing = talk(lambda client: client.list_tools(), service)
    assert [tool.name for tool in listing.tools] == [tool.name for tool in domain_of("mcp").tools]


COUNT = {
    "name": "count",
    "input_schema": {"type": "object"},
    "output_schema": {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    },
    "effect": "read",
}


@pytest.mark.compute
def test_a_tool_with_an_output_schema_returns_structured_content(serve, talk):
    service = serve(lambda messages: '{"n": 3}', domains=records.pinned_domains("text"))

    async def act(client):
        return await client.list_tools(), await client.call_tool("count", {})

    _, (listing, result) = talk(act, service, tools=[COUNT])
    (tool,) = listing.tools
    assert tool.output_schema == COUNT["output_schema"]
    assert tool.annotations.read_only_hint is True
    assert (result.content[0].text, result.structured_content) == ('{"n": 3}', {"n": 3})


@pytest.mark.compute
def test_an_observation_that_violates_the_output_schema_is_a_tool_error(serve, talk):
    service = serve(lambda messages: "Error: none", domains=records.pinned_domains("text"))
    episode, result = talk(lambda client: client.call_tool("count", {}), service, tools=[COUNT])
    assert result.is_error
    assert result.content[0].text == "Error: none"
    (step,) = service.ledger.episode(episode).steps
    assert step.observation == "Error: none"
