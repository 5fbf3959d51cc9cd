import json
from collections import Counter

import pytest

from agentworld.domains.base import HISTORY, Start, domain_of
from agentworld.domains.mcp.shop.tools import shop_tools
from agentworld.domains.mcp.tags import FAILURE
from agentworld.records.trajectory import Turn
from make import shop_episodes

MCP = domain_of("mcp")
EPISODES = [shop_episodes.episode(seed) for seed in range(80)]
TURNS = [turn for episode in EPISODES for turn in episode.turns]


def test_a_random_explorer_calls_every_tool_and_causes_few_errors_of_many_kinds():
    calls = Counter(json.loads(turn.action)["name"] for turn in TURNS)
    assert {*calls} == {tool.name for tool in shop_tools()}
    errors = [turn.observation for turn in TURNS if MCP.is_failure(turn.observation)]
    assert 0.05 < len(errors) / len(TURNS) < 0.35
    assert len({error[:22] for error in errors}) > 4


def test_many_turns_change_the_state_and_many_show_earlier_changes():
    changes = [turn for turn in TURNS if turn.before != turn.after]
    assert 0.25 < len(changes) / len(TURNS) < 0.6
    start = Start(domain="mcp")
    tags = [
        turn_tags
        for episode in EPISODES
        for turn_tags in MCP.tags(
            start,
            [Turn(action=turn.action, observation=turn.observation) for turn in episode.turns],
        )
    ]
    assert sum(HISTORY in turn_tags for turn_tags in tags) / len(tags) > 1 / 3
    assert sum(FAILURE in turn_tags for turn_tags in tags) < len(tags) / 3


def test_an_explorer_takes_all_its_turns_and_is_deterministic_for_a_seed():
    assert {len(episode.turns) for episode in EPISODES} == {12}
    repeat = shop_episodes.episode(7)
    assert [turn.action for turn in repeat.turns] == [turn.action for turn in EPISODES[7].turns]


@pytest.mark.compute
def test_a_task_explorer_takes_all_steps_in_many_but_not_all_episodes():
    episodes = [shop_episodes.episode(seed, pursues_task=True) for seed in range(60)]
    solved = [
        {*episode.solved.steps} <= {turn.action for turn in episode.turns} for episode in episodes
    ]
    assert 20 < sum(solved) < 60
    assert all(len(episode.turns) >= 2 for episode in episodes)
