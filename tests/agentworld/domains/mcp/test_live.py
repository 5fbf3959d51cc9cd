"""Live servers in sandboxes: the shop, and a server of the official package unknown to the code."""

import asyncio
import json
import shutil
import sys
from pathlib import Path
from random import Random

import mcp
import pytest

from agentworld.data.explore import explore
from agentworld.domains.base import Start, domain_of
from agentworld.domains.explorers import ScriptedExplorer
from agentworld.domains.live import LiveSettings, live_domain, open_environment
from agentworld.domains.mcp import live
from agentworld.domains.mcp.explorer import SchemaExplorer
from agentworld.domains.mcp.process import SandboxedServer
from agentworld.domains.mcp.shop.tasks import solved_task
from agentworld.domains.mcp.shop.tools import shop_command
from agentworld.domains.programs import PYTHON
from agentworld.errors import EnvironmentBroken, EnvironmentUnavailable, InputError
from agentworld.recipes.data import CollectRecipe
from agentworld.records.tool import Tool
from make import records

LIVE, MCP = live_domain("mcp"), domain_of("mcp")
PACKAGES = Path(mcp.__path__[0]).parent
OTHER_SERVER = """
import os, pathlib, socket
from mcp.server.mcpserver import MCPServer

server = MCPServer("notes")
notes = pathlib.Path("notes.txt")

@server.tool()
def write_note(text: str) -> str:
    notes.write_text(text)
    return "written"

@server.tool()
def read_note() -> str:
    return notes.read_text()

@server.tool()
def count_words(text: str) -> dict[str, int]:
    return {word: text.split().count(word) for word in text.split()}

@server.tool()
def look_outside() -> list[bool]:
    try:
        socket.create_connection(("127.0.0.1", 1))
        is_connected = True
    except PermissionError:
        is_connected = False
    return [os.path.exists("/etc/passwd"), os.path.exists("/proc/1"), is_connected]

server.run("stdio")
"""


def in_servers(work, options=None, seconds=60.0):
    async def run_work():
        settings = LiveSettings(step_seconds=seconds, options=options or {})
        async with open_environment("mcp", settings) as environment:
            return await work(environment)

    return asyncio.run(run_work())


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


@pytest.fixture
def notes_options(open_folder):
    """Options with a server of the official package."""
    (open_folder / "server.py").write_text(OTHER_SERVER)
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin")
    command = f"/usr/bin/env PYTHONPATH={PACKAGES} {python} {open_folder}/server.py"
    folders = [str(PACKAGES), str(open_folder)]
    return {"servers": {"notes": {"command": command, "folders": folders}}}


@pytest.mark.waits
def test_an_episode_begins_with_the_shop_of_its_task():
    solved = solved_task(3, held_out=True)

    async def work(environment):
        return await environment.reset(solved.task), await environment.state()

    start, state = in_servers(work)
    assert start == Start(domain="mcp", text=solved.task.initial_state)
    assert state == solved.task.initial_state


@pytest.mark.waits
def test_shop_processes_are_reused_and_each_episode_begins_with_its_task_state(monkeypatch):
    starts = []

    class CountedServer(SandboxedServer):
        def __init__(self, *arguments):
            starts.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(live, "SandboxedServer", CountedServer)

    async def work(environment):
        for seed in range(20):
            solved = solved_task(seed, held_out=False)
            start = await environment.reset(solved.task)
            assert start == Start(domain="mcp", text=solved.task.initial_state)
            for step in solved.steps:
                await environment.step(step)
            assert await environment.check(solved.task)

    in_servers(work)
    assert len(starts) == 2


@pytest.mark.waits
def test_the_database_check_passes_only_after_the_steps_of_a_task():
    async def work(environment):
        checks = []
        for seed in range(30):
            solved = solved_task(seed, held_out=True)
            await environment.reset(solved.task)
            before = await environment.check(solved.task)
            for step in solved.steps:
                observation = await environment.step(step)
            outcome = MCP.outcome(solved.task, step, observation.text)
            checks.append((before, await environment.check(solved.task), outcome))
        return checks

    assert in_servers(work) == [(False, True, True)] * 30


@pytest.mark.waits
def test_a_task_without_a_goal_state_is_not_checked():
    async def work(environment):
        task = solved_task(1, held_out=False, has_goal=False).task
        await environment.reset(task)
        return await environment.check(task)

    assert in_servers(work) is None


@pytest.mark.waits
def test_no_call_can_read_the_state_resource():
    async def work(environment):
        await environment.reset(solved_task(1, held_out=False).task)
        actions = [call("resources/read", uri="shop://state"), call("state")]
        return [(await environment.step(action)).text for action in actions]

    assert in_servers(work) == [
        "MCP error -32602: Unknown tool: resources/read",
        "MCP error -32602: Unknown tool: state",
    ]


@pytest.mark.waits
def test_a_server_given_by_its_command_line_runs_in_the_sandbox(notes_options):
    task = records.task(domain="mcp", instruction="")

    async def work(environment):
        start = await environment.reset(task)
        actions = [
            call("write_note", text="kolu"),
            call("read_note"),
            call("count_words", text="a b a"),
            call("look_outside"),
            call("write_note"),
        ]
        observations = [(await environment.step(action)).text for action in actions]
        await environment.reset(task)
        return start, observations, (await environment.step(call("read_note"))).text

    start, observations, next_observation = in_servers(work, notes_options)
    tools = {tool.name: tool for tool in start.tools}
    assert tools["count_words"].output_schema
    write_result, note, counts, visibility, refusal = observations
    assert (write_result, note) == ("written", "kolu")
    assert json.loads(counts) == {"a": 2, "b": 1}
    assert "true" not in visibility.casefold()
    assert refusal.startswith("Error executing tool write_note: 1 validation error")
    assert MCP.is_failure(next_observation)


@pytest.mark.waits
def test_third_party_servers_are_explored_and_their_tools_are_recorded(notes_options):
    recipe = CollectRecipe(
        domain="mcp", options=notes_options, task_share=0, turns_per_episode=6, num_transitions=1
    )
    (episode,) = asyncio.run(explore(recipe, [0], held_out=False))
    assert {tool.name for tool in episode.tools} >= {"write_note", "read_note"}
    assert (len(episode.turns), episode.initial_state) == (6, "")


def test_tasks_of_the_shop_are_refused_by_other_servers():
    async def work(environment):
        await environment.reset(solved_task(1, held_out=False).task)

    with pytest.raises(InputError, match="is of the shop.*collect.task_share to 0"):
        in_servers(work, {"servers": {"a": {"command": "true"}}})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"server": {}}, "server"),
        ({"servers": {"a b": {"command": "true"}}}, "servers"),
        ({"servers": {"a": {"command": ""}}}, "servers.a: .*either a command or a url"),
        ({"servers": {"a": {"command": "'"}}}, "No closing quotation"),
    ],
)
def test_invalid_server_options_are_refused(options, problem):
    with pytest.raises(InputError, match=problem):
        in_servers(lambda _: None, options)


def test_a_missing_server_command_breaks_the_reset_with_the_shell_error():
    async def work(environment):
        await environment.reset(records.task(domain="mcp", instruction=""))

    with pytest.raises(EnvironmentBroken, match="server a did not start.*nowhere.*not found"):
        in_servers(work, {"servers": {"a": {"command": "nowhere"}}})


def test_a_shop_is_unavailable_without_python_in_the_sandbox(monkeypatch):
    LIVE.check_available()
    assert sys.version_info >= (3, 11)
    program = PYTHON._replace(path="/nowhere")
    monkeypatch.setattr("agentworld.domains.mcp.shop.tools.PYTHON", program)
    with pytest.raises(EnvironmentUnavailable, match="needs python3"):
        shop_command()


@pytest.mark.waits
def test_shop_episodes_recorded_twice_differ_only_in_volatile_values():
    recipe = CollectRecipe(domain="mcp", turns_per_episode=8, num_transitions=1, task_share=0.5)
    first, second = (asyncio.run(explore(recipe, range(8), held_out=False)) for _ in range(2))
    assert {episode.source for episode in first} == {"task-explorer", "random-explorer"}
    assert {episode.tools for episode in first} == {()}
    for episode, repeat in zip(first, second, strict=True):
        assert [turn.action for turn in episode.turns] == [turn.action for turn in repeat.turns]
        for turn, second_turn in zip(episode.turns, repeat.turns, strict=True):
            assert set(MCP.verify(second_turn.observation, turn.observation).values()) == {True}


@pytest.mark.parametrize(
    ("tools", "kind"),
    [((), ScriptedExplorer), ((Tool(name="a", input_schema={"type": "object"}),), SchemaExplorer)],
)
def test_the_tools_of_an_episode_select_the_explorer(tools, kind):
    explorer = LIVE.explorer(
        Random(1),
        Start(domain="mcp", tools=tools),
        LIVE.task(1, held_out=False),
        held_out=False,
        pursues_task=False,
        num_turns=3,
    )
    assert isinstance(explorer, kind)
