import asyncio
from random import Random

import pytest

from agentworld.domains.base import Start
from agentworld.domains.live import LiveSettings, Observation, live_domain, open_environment
from agentworld.domains.shell.tasks import solved_task
from agentworld.errors import EnvironmentBroken
from make import records

SHELL = live_domain("shell")


def in_shell(work, seconds=60.0):
    async def run_work():
        async with open_environment("shell", LiveSettings(step_seconds=seconds)) as environment:
            return await work(environment)

    return asyncio.run(run_work())


def test_an_episode_begins_with_the_files_of_its_task():
    async def work(environment):
        start = await environment.reset(records.task(initial_state="a/b.txt: kolu / tane"))
        return start.domain, start.text, await environment.step("cat a/b.txt")

    assert in_shell(work) == ("shell", "a/b.txt: kolu / tane", ("kolu\ntane\n[0] ~", False))


def test_reading_the_state_is_no_step_and_uses_the_format_of_a_start():
    async def work(environment):
        await environment.reset(records.task(initial_state=""))
        states = [await environment.state()]
        await environment.step("echo kolu > a.txt")
        return *states, await environment.state(), environment.num_steps

    assert in_shell(work) == ("", "a.txt: kolu", 1)


@pytest.mark.compute
def test_a_new_episode_contains_no_file_of_the_previous_episode():
    async def work(environment):
        await environment.reset(records.task())
        await environment.step("touch new")
        await environment.reset(records.task())
        return await environment.step("ls")

    assert in_shell(work) == Observation("rimo.txt\n[0] ~")


@pytest.mark.compute
@pytest.mark.parametrize("action", ["exit", "echo \x00", "echo \ud800"])
def test_an_action_that_ends_the_shell_or_is_no_text_breaks_the_episode(action):
    async def work(environment):
        await environment.reset(records.task())
        await environment.step(action)

    with pytest.raises(EnvironmentBroken):
        in_shell(work)


@pytest.mark.parametrize(("text", "is_right"), [("kolu", True), ("tane", False)])
def test_a_task_that_shows_a_file_is_checked_by_the_files(text, is_right):
    async def work(environment):
        task = records.task(success={"closing": r"cat\ a\.txt", "output": "kolu"})
        await environment.reset(task)
        await environment.step(f"echo {text} > a.txt; cat() {{ echo kolu; }}")
        return await environment.check(task), await environment.check(records.task())

    assert in_shell(work) == (is_right, None)


def actions_of(pursues_task, num_turns, seed=0):
    task = SHELL.task(3, held_out=False)
    explorer = SHELL.explorer(
        Random(seed),
        Start(domain="shell", text=task.initial_state),
        task,
        held_out=False,
        pursues_task=pursues_task,
        num_turns=num_turns,
    )
    actions = []
    while (action := explorer.act(None)) is not None:
        actions.append(action)
    return actions


def test_an_explorer_takes_exactly_the_allowed_turns():
    assert len(actions_of(pursues_task=False, num_turns=7)) == 7
    assert len(actions_of(pursues_task=True, num_turns=1)) == 1


def test_a_task_explorer_takes_all_steps_in_many_episodes():
    steps = set(solved_task(3, held_out=False).steps)
    pursuits = [actions_of(pursues_task=True, num_turns=10, seed=seed) for seed in range(20)]
    assert sum(steps <= {*actions} for actions in pursuits) > 8
    assert any(steps != {*actions} for actions in pursuits)


def test_an_explorer_is_deterministic_for_a_seed():
    assert actions_of(True, 10) == actions_of(True, 10)
    assert actions_of(False, 10) != actions_of(False, 10, seed=1)


def test_bwrap_is_the_launcher_of_the_shell_and_is_available():
    assert SHELL.launchers == {"bwrap"}
    SHELL.check_available()
