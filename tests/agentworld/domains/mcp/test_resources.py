"""Resources of servers; an agent lists and reads them by calls of tools."""

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
BOOK_A, BOOK_B = ({"server": "books", "uri": f"book://{name}", "name": name} for name in "ab")


def play(*actions, commands=None):
    """The names of the tools, and the observations of the actions."""

    async def episode():
        mcp_environment = environment(commands or {"books": library()}, Started())
        try:
            start = await mcp_environment.reset(records.task(domain="mcp"))
            check_tools(start.tools)
            observations = [(await mcp_environment.step(action)).text for action in actions]
            return [tool.name for tool in start.tools], observations
        finally:
            await mcp_environment.aclose()

    return asyncio.run(episode())


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


def test_resources_are_listed_by_page_or_of_all_servers():
    names, texts = play(
        call(LIST, server="books"),
        call(LIST, server="books", cursor="1"),
        call(LIST),
        call(TEMPLATES),
    )
    assert names == [LIST, TEMPLATES, READ]
    template = {"server": "books", "uriTemplate": "book://{name}", "name": "book"}
    assert [json.loads(text) for text in texts] == [
        {"server": "books", "resources": [BOOK_A], "nextCursor": "1"},
        {"server": "books", "resources": [BOOK_B]},
        {"resources": [BOOK_A, BOOK_B]},
        {"resourceTemplates": [template]},
    ]


def test_a_resource_is_read_without_its_bytes():
    _, texts = play(*[call(READ, server="books", uri=book["uri"]) for book in (BOOK_A, BOOK_B)])
    assert [json.loads(text)["contents"] for text in texts] == [
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
    _, texts = play(action)
    assert texts == [problem]
    assert MCP.is_failure(problem)


def test_resource_tools_require_resources_and_colliding_tool_names_are_prefixed():
    names, (text, refusal) = play(
        call(LIST),
        call(f"tools__{LIST}"),
        commands={"tools": command(LIST), "books": library()},
    )
    assert {LIST, f"tools__{LIST}"} < set(names)
    assert {item["server"] for item in json.loads(text)["resources"]} == {"books"}
    assert refusal == "MCP error -32000: not today"
    assert LIST not in play(commands={"tools": command()})[0]


def test_an_explorer_reads_a_uri_from_the_observation():
    async def tools():
        mcp_environment = environment({"books": library()}, Started())
        try:
            return (await mcp_environment.reset(records.task(domain="mcp"))).tools
        finally:
            await mcp_environment.aclose()

    *_, read_tool = asyncio.run(tools())
    explorer = SchemaExplorer(random.Random(1), [read_tool], ["kolu"], num_turns=1)
    action = explorer.act(Observation(json.dumps({"resources": [BOOK_A]})))
    assert json.loads(action)["arguments"]["uri"] == "book://a"
