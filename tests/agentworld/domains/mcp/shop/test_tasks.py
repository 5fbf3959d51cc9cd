import json
import re
from collections import Counter

import pytest

from agentworld.domains.base import domain_of
from agentworld.domains.mcp.shop.server import Shop
from agentworld.domains.mcp.shop.tasks import answer, solved_task
from agentworld.domains.words import has_unseen_word

MCP = domain_of("mcp")
TASKS = [solved_task(seed, held_out=False) for seed in range(120)]


def play(solved, steps):
    """The outcome of each step, and the state after the last step."""
    shop = Shop(solved.task.initial_state)
    outcomes = [MCP.outcome(solved.task, step, answer(shop, step)) for step in steps]
    return outcomes, shop.state()


@pytest.mark.compute
def test_the_steps_of_a_task_succeed_by_transcript_and_by_database():
    for solved in TASKS:
        outcomes, state = play(solved, solved.steps)
        assert outcomes == [None, True]
        assert state == solved.task.success.state != solved.task.initial_state


@pytest.mark.compute
def test_taking_only_the_closing_step_fails_the_task():
    for solved in TASKS:
        outcomes, state = play(solved, solved.steps[-1:])
        assert outcomes == [False]
        assert state != solved.task.success.state


@pytest.mark.compute
def test_an_extra_change_is_detected_only_in_the_database():
    extra_step = '{"name":"add_item","arguments":{"item":"zzz","price":1,"stock":1}}'
    for solved in TASKS:
        outcomes, state = play(solved, [extra_step, *solved.steps])
        assert outcomes[-1] is True
        assert state != solved.task.success.state


def test_every_family_has_tasks_and_instructions_contain_the_arguments():
    families = Counter(solved.task.family for solved in TASKS)
    assert {*families} == {"add", "reprice", "restock", "order", "cancel", "remove"}
    assert min(families.values()) >= 5
    assert len({solved.task.instruction for solved in TASKS}) > 100
    for solved in TASKS:
        call = json.loads(solved.steps[0])
        values = {str(value) for value in call["arguments"].values()}
        assert values <= {*re.findall(r"\w+", solved.task.instruction)}


def test_a_task_without_a_goal_has_an_initial_shop_and_no_outcome():
    solved = solved_task(3, held_out=False, has_goal=False)
    assert solved.task.initial_state
    assert solved.task.success.state == solved.task.instruction == ""
    for other_task in TASKS:
        assert all(MCP.outcome(solved.task, step, "") is None for step in other_task.steps)


@pytest.mark.parametrize("held_out", [False, True])
def test_only_held_out_tasks_contain_held_out_words(held_out):
    tasks = [solved_task(seed, held_out=held_out).task for seed in range(20)]
    are_unseen = [has_unseen_word(f"{task.instruction} {task.initial_state}") for task in tasks]
    assert any(are_unseen) is held_out
    assert ("held-out" in tasks[0].id) is held_out
