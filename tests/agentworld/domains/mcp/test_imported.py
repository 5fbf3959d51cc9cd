"""Logs of agents that called tools, and episodes that were recorded live, make one data set."""

import json

from agentworld.data.importers import importer_of
from agentworld.data.importers.messages import MessagesOptions
from agentworld.domains.base import Start, domain_of
from agentworld.domains.mcp.shop.tools import listed_tools, shop_tools
from agentworld.storage.source import files_of
from make import shop_episodes


def chat(episode):
    """A harness's log in the form of OpenAI's messages."""
    messages = []
    for number, turn in enumerate(episode.turns):
        call = json.loads(turn.action)
        arguments = json.dumps(call["arguments"], indent=1)
        function = {"name": call["name"], "arguments": arguments}
        calls = [{"id": f"c{number}", "type": "function", "function": function}]
        messages += [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"c{number}", "content": turn.observation},
        ]
    return {"messages": messages, "tools": listed_tools()}


def test_an_imported_log_has_the_turns_the_tools_and_the_tags_of_the_live_episode(tmp_path):
    episode = shop_episodes.episode(5)
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(chat(episode)) + "\n")
    (file,) = files_of(str(path))
    (item,) = importer_of("messages").read(file, MessagesOptions(), "mcp")
    trajectory = item.trajectory
    assert trajectory.domain == "mcp"
    assert trajectory.tools == shop_tools()
    live_turns = [(turn.action, turn.observation) for turn in episode.turns]
    assert [(turn.action, turn.observation) for turn in trajectory.turns] == live_turns
    domain = domain_of("mcp")
    tags = domain.tags(Start(domain="mcp"), trajectory.turns)
    assert domain.tags(Start(domain="mcp", tools=trajectory.tools), trajectory.turns) == tags
