"""Resources of servers, which an agent lists and reads by calls of tools."""

import asyncio
import json
import random

import pytest

from agentworld.domains.base import domain_of
from agentworld.domains.live import Observation
from agentworld.domains.mcp.explorer import SchemaExplorer
from agentworld.domains.tools import check_tools
from make import records
from make.mcp_servers import Started, command, environment, library

MCP = domain_of("mcp")

pytestmark = pytest.mark.waits

LIST, TEMPLATES, READ = "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"
A, B = ({"server": "books", "uri": f"book://{name}", "name": name} for name in "ab")


def play(*actions, commands=None):
    """The names of the tools, and what the actions show."""

    async def episode():
        played = environment(commands or {"books": library()}, Started())
        try:
            start = await played.reset(records.task(domain="mcp"))
            check_tools(start.tools)
            shown = [(await played.step(action)).text for action in actions]
            return [tool.name for tool in start.tools], shown
        finally:
            await played.aclose()

    return asyncio.run(episode())


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


def test_resources_are_listed_by_page_or_of_all_servers():
    names, shown = play(
        call(LIST, server="books"),
        call(LIST, server="books", cursor="1"),
        call(LIST),
        call(TEMPLATES),
    )
    assert names == [LIST, TEMPLATES, READ]
    template = {"server": "books", "uriTemplate": "book://{name}", "name": "book"}
    assert [json.loads(text) for text in shown] == [
        {"server": "books", "resources": [A], "nextCursor": "1"},
        {"server": "books", "resources": [B]},
        {"resources": [A, B]},
        {"resourceTemplates": [template]},
    ]


def test_a_resource_is_read_without_its_bytes():
    _, shown = play(*[call(READ, server="books", uri=book["uri"]) for book in (A, B)])
    assert [json.loads(text)["contents"] for text in shown] == [
        [{"uri": "book://a", "text": "kolu"}],
        [{"uri": "book://b", "blob": 4}],
    ]


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        (call(READ, server="books", uri="book://c"), "MCP error -32000: not today"),
        (call(READ, server="others", uri="book://a"), "MCP error -32602: Unknown server: others"),
        (call(READ, server="books"), "MCP error -32602: A server and a uri are required"),
        (call(READ, server="books", uri=1), "MCP error -32602: Arguments are not texts"),
        (call(LIST, cursor="1"), "MCP error -32602: A cursor needs a server"),
    ],
)
def test_an_unreadable_resource_is_a_protocol_error(action, problem):
    _, shown = play(action)
    assert shown == [problem]
    assert MCP.is_failure(problem)


def test_resource_tools_require_resources_and_colliding_tool_names_are_prefixed():
    names, (text, refused) = play(
        call(LIST),
        call(f"tools__{LIST}"),
        commands={"tools": command(LIST), "books": library()},
    )
    assert {LIST, f"tools__{LIST}"} < set(names)
    assert {item["server"] for item in json.loads(text)["resources"]} == {"books"}
    assert refused == "MCP error -32000: not today"
    assert LIST not in play(commands={"tools": command()})[0]


def test_an_explorer_reads_a_uri_from_the_observation():
    async def tools():
        played = environment({"books": library()}, Started())
        try:
            return (await played.reset(records.task(domain="mcp"))).tools
        finally:
            await played.aclose()

    *_, read = asyncio.run(tools())
    explorer = SchemaExplorer(random.Random(1), [read], ["kolu"], num_turns=1)
    action = explorer.act(Observation(json.dumps({"resources": [A]})))
    assert json.loads(action)["arguments"]["uri"] == "book://a"
