"""Servers that work and servers that break, without a sandbox around them."""

import asyncio
import json
import sys

import grimp
import pytest

from agentworld.domains.base import domain_of
from agentworld.errors import EnvironmentBroken
from make import records
from make.mcp_servers import Started, command
from make.mcp_servers import environment as environment_of
from waiting import DEADLINE

TASK = records.task(domain="mcp")


def play(*actions, commands=None, seconds=60.0, servers=None):
    """The start of an episode and the observations of its actions."""

    async def episode():
        environment = environment_of(
            commands or {"test": command()},
            servers if servers is not None else Started(),
            seconds=seconds,
        )
        try:
            start = await environment.reset(TASK)
            observations = [(await environment.step(action)).text for action in actions]
            assert environment.num_steps == len(actions)
            return start, observations
        finally:
            await environment.aclose()

    return asyncio.run(episode())


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


def observe(*actions, **settings):
    return play(*actions, **settings)[1]


def test_the_start_lists_the_tools_of_all_pages_with_both_schemas():
    start, _ = play()
    tools = {tool.name: tool for tool in start.tools}
    assert len(tools) == 13
    assert tools["echo"].input_schema["properties"] == {"text": {"type": "string"}}
    assert tools["promised"].output_schema["required"] == ["n"]
    assert tools["echo"].output_schema is None
    assert (start.domain, start.text) == ("mcp", "")


def test_the_observation_of_a_call_is_the_text_of_its_result():
    assert observe(call("echo", text="a\nb"), call("unpromised")) == ["a\nb", "one"]


def test_structured_content_missing_from_the_text_is_shown():
    assert observe(call("promised"), call("other")) == ['{\n "n": 1\n}', 'one\n{"n":1}']


def test_calls_of_one_action_run_in_order():
    assert observe("\n".join([call("count")] * 3), call("count")) == ["1\n2\n3", "4"]


@pytest.mark.parametrize(
    ("action", "refusal"),
    [
        ("ls", "MCP error -32700: Parse error"),
        ('{"name": "echo", "arguments": {', "MCP error -32700: Parse error"),
        ('{"name": "echo"}', "MCP error -32602: Invalid request parameters"),
        ('["echo"]', "MCP error -32602: Invalid request parameters"),
        ('{"name": "echo", "arguments": "a"}', "MCP error -32602: Invalid request parameters"),
        ('{"name": "echo", "arguments": {"text": NaN}}', "MCP error -32602"),
        ('{"name": "echo", "arguments": {"text": "\\ud800"}}', "MCP error -32602"),
    ],
)
def test_an_action_that_is_no_call_returns_a_protocol_error(action, refusal):
    observation, next_observation = observe(action, call("echo", text="a"))
    assert observation.startswith(refusal)
    assert domain_of("mcp").is_failure(observation)
    assert next_observation == "a"


def test_errors_of_a_tool_and_of_the_protocol_are_observations():
    observations = observe(call("fail"), call("refuse"), call("nowhere"))
    assert observations == [
        "Error: no such thing",
        *["MCP error -32000: not today"] * 2,
    ]
    assert all(map(domain_of("mcp").is_failure, observations))


def test_server_output_lines_that_are_no_messages_are_ignored():
    assert observe(call("chatter", text="a"), call("echo", text="b")) == ["a", "b"]


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        pytest.param("hang", "did not answer a call in 3 s", marks=pytest.mark.waits),
        (
            "die",
            "ended during a call; the episode is over; its error output ends with 'out of luck'",
        ),
        ("flood", "ended during a call"),
        ("broken", "answered a call against the protocol: Invalid structured content"),
        ("missing", "answered a call against the protocol: Tool missing has an output schema"),
    ],
)
def test_a_server_fault_breaks_the_episode_and_the_next_server_is_clean(tool, problem):
    servers = Started()

    async def episodes():
        # The next server also has to start and to answer in this time.
        seconds = 3 if tool == "hang" else DEADLINE
        environment = environment_of({"test": command()}, servers, seconds=seconds)
        await environment.reset(TASK)
        with pytest.raises(EnvironmentBroken, match=f"the MCP server test {problem}"):
            await environment.step(call(tool))
        with pytest.raises(EnvironmentBroken, match="no episode is open"):
            await environment.step(call("echo"))
        await environment.reset(TASK)
        try:
            return (await environment.step(call("count"))).text
        finally:
            await environment.aclose()

    assert asyncio.run(episodes()) == "1"
    assert servers.num_running == 0


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (
            (sys.executable, "-c", "raise SystemExit('no license')"),
            "its error output ends with 'no license'",
        ),
        (("/nowhere/at-all",), "No such file"),
    ],
)
def test_a_server_that_does_not_start_breaks_the_reset_with_its_reason(program, problem):
    servers = Started()
    with pytest.raises(EnvironmentBroken, match=f"server bad did not start.*{problem}"):
        play(commands={"good": command(), "bad": program}, servers=servers)
    assert servers.num_running == 0


def test_colliding_tool_names_are_prefixed_with_their_server_names():
    commands = {"one": command("only"), "two": command()}
    actions = [call("one__count"), call("one__count"), call("two__count"), call("only")]
    start, observations = play(*actions, call("count"), commands=commands)
    names = {tool.name for tool in start.tools}
    assert {"one__count", "two__count", "only"} < names
    assert "count" not in names
    *counts, only_result, unknown_result = observations
    assert counts == ["1", "2", "1"]
    assert only_result == "MCP error -32000: not today"
    assert unknown_result == "MCP error -32602: Unknown tool: count"


def test_a_server_ends_with_its_event_loop():
    servers = Started()

    async def abandon():
        environment = environment_of({"test": command()}, servers)
        await environment.reset(TASK)
        return environment

    environment = asyncio.run(abandon())
    assert servers[0].process.poll() is not None
    asyncio.run(environment.aclose())


@pytest.mark.compute
def test_the_environment_module_does_not_import_the_sandbox():
    graph = grimp.build_graph("agentworld")
    modules = graph.find_upstream_modules("agentworld.domains.mcp.environment")
    assert "agentworld.domains.mcp.transport" in modules
    assert "agentworld.domains.sandbox" not in modules
