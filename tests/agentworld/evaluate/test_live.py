import asyncio

import psutil
import pytest

from agentworld.domains.base import domain_of
from agentworld.domains.guard import LiveEnvironmentRefused
from agentworld.domains.live import LiveSettings, Observation, no_environment
from agentworld.domains.shell.tasks import solved_task
from agentworld.engine.fake import FakeEngine
from agentworld.errors import EnvironmentBroken, NotFound
from agentworld.evaluate.agent import Policy, play, play_all
from agentworld.evaluate.live import LiveWorld
from agentworld.records.progress import ignore_progress
from agentworld.records.simulator import Sampling
from agentworld.records.task import SuccessRule
from make import records
from make.live_domains import ScriptedDomain, registered
from waiting import DEADLINE

TASK = records.task(turn_limit=4)
FILE_TASK = TASK.model_copy(
    update={"success": SuccessRule(closing=r"cat\ tane\.txt", output="kolu besa")}
)


def steps(*actions, seconds=5.0, task=TASK):
    """The live world's observations of these actions, and its number of steps."""

    async def live():
        world = LiveWorld("shell", LiveSettings(step_seconds=seconds))
        try:
            episode = await world.reset(task)
            return [await world.step(episode, action) for action in actions], world.num_steps
        finally:
            await world.close()

    return asyncio.run(live())


def test_an_episode_starts_with_the_tasks_files_and_ends_in_success():
    (read_step, echo_step), num_steps = steps("cat rimo.txt", "echo besa")
    assert (read_step.observation, read_step.reward, read_step.done) == ("besa\n[0] ~", None, False)
    assert (echo_step.reward, echo_step.done, echo_step.truncated) == (1.0, True, False)
    assert not read_step.low_confidence
    assert num_steps == 2


def test_a_wrong_final_output_has_reward_zero():
    (step,), _ = steps("echo kolu")
    assert (step.reward, step.done) == (0.0, True)


def test_the_turn_limit_ends_an_episode():
    *_, last = steps("ls", "ls", "ls", "ls")[0]
    assert (last.reward, last.done, last.truncated) == (0.0, True, True)


@pytest.mark.compute
@pytest.mark.parametrize(
    "action", ["exit", "sleep 9", "yes", "cat rimo.txt \x00", "kill -9 $$", "echo \ud800"]
)
def test_a_command_that_breaks_the_sandbox_raises(action):
    with pytest.raises(EnvironmentBroken):
        steps(action, seconds=0.5)


@pytest.mark.parametrize("action", ["exit", "echo \x00"])
def test_a_broken_sandbox_accepts_no_further_step(action):
    async def live():
        world = LiveWorld("shell")
        episode = await world.reset(TASK)
        with pytest.raises(EnvironmentBroken):
            await world.step(episode, action)
        assert world.num_steps == 1
        await world.step(episode, "ls")

    with pytest.raises(NotFound):
        asyncio.run(live())


@pytest.mark.parametrize(
    ("command", "reward", "disagreements"),
    [
        ("echo kolu besa > tane.txt", 1.0, 0),
        ("mkdir a; cd a; printf 'kolu besa' > tane.txt", 1.0, 0),
        ("cat() { echo kolu besa; }", 0.0, 1),
        ("alias cat='echo kolu besa; :'", 0.0, 1),
        ("echo kolu besa > other; cat() { command cat other; }", 0.0, 1),
        ("echo kolu besa > $'a\\ntane.txt'; cat() { command cat a*; }", 0.0, 1),
        ("printf 'a\\rtane.txt: kolu besa' > b; cat() { echo kolu besa; }", 0.0, 1),
        ("echo kolu > tane.txt", 0.0, 0),
    ],
    ids=["written", "elsewhere", "function", "alias", "another", "a name", "a text", "wrong"],
)
def test_a_success_is_checked_in_the_files_even_if_cat_is_redefined(command, reward, disagreements):
    async def live():
        world = LiveWorld("shell", LiveSettings(step_seconds=60))
        episode = await world.reset(FILE_TASK)
        await world.step(episode, command)
        step = await world.step(episode, "cat tane.txt")
        await world.close()
        return (step.reward, step.done, world.num_disagreements)

    assert asyncio.run(live()) == (reward, True, disagreements)


def test_a_finished_episode_accepts_no_step():
    with pytest.raises(NotFound, match="no live episode"):
        steps("echo besa", "ls")


@pytest.mark.compute
def test_concurrent_episodes_have_separate_files():
    async def live():
        world = LiveWorld("shell")
        first, second = await asyncio.gather(world.reset(TASK), world.reset(TASK))
        await world.step(first, "echo kolu > tane.txt")
        step = await world.step(second, "ls")
        await world.close()
        return step.observation

    assert asyncio.run(live()) == "rimo.txt\n[0] ~"


@pytest.mark.compute
def test_a_closed_world_leaves_no_process_behind():
    before = set(psutil.Process().children(recursive=True))

    async def live():
        world = LiveWorld("shell")
        await asyncio.gather(*(world.reset(TASK) for _ in range(3)))
        children = set(psutil.Process().children(recursive=True)) - before
        await world.close()
        return children

    children = asyncio.run(live())
    assert len(children) >= 3
    _, alive = psutil.wait_procs(children, timeout=DEADLINE)
    assert not alive


@pytest.mark.compute
def test_a_policy_that_knows_the_steps_succeeds_at_every_task():
    solved_tasks = [solved_task(seed, held_out=True) for seed in range(6)]
    steps_of = {solution.task.instruction: solution.steps for solution in solved_tasks}

    def answer(messages):
        return steps_of[messages[0]["content"]][len(messages) // 2]

    async def live():
        world = LiveWorld("shell")
        tasks = [solution.task for solution in solved_tasks]
        episodes = await play_all(
            Policy(FakeEngine(answer), Sampling()),
            domain_of("shell"),
            world,
            tasks,
            ignore_progress,
        )
        await world.close()
        return episodes

    assert [episode.success for episode in asyncio.run(live())] == [True] * 6


def test_an_action_that_exits_the_shell_fails_the_episode():
    async def live():
        world = LiveWorld("shell")
        episode = await play(
            Policy(FakeEngine(lambda _: "exit"), Sampling()), domain_of("shell"), world, TASK
        )
        await world.close()
        return episode

    episode = asyncio.run(live())
    assert (episode.success, episode.turns) == (False, ())
    assert "left the shell" in episode.problem


def play_text(monkeypatch, *actions, is_right=None, answer=Observation):
    """The steps of a text world, the number of failed checks, and the environment."""
    domain = ScriptedDomain(answer)
    domain.is_right = is_right
    registered(monkeypatch, "text", domain)
    task = records.task(domain="text", success={"closing": "buy", "output": "buy"})

    async def live():
        world = LiveWorld("shell")
        episode = await world.reset(task)
        turns = [await world.step(episode, action) for action in actions]
        return turns, world.num_disagreements

    return *asyncio.run(live()), domain.environments[0]


@pytest.mark.parametrize(
    ("is_right", "reward", "disagreements"), [(None, 1.0, 0), (True, 1.0, 0), (False, 0.0, 1)]
)
def test_the_environment_of_the_tasks_domain_can_refute_a_success(
    monkeypatch, is_right, reward, disagreements
):
    turns, num_disagreements, environment = play_text(monkeypatch, "look", "buy", is_right=is_right)
    assert turns[-1] == ("buy", reward, True, False, False)
    assert num_disagreements == disagreements
    assert not environment.is_open


def test_an_environment_that_ends_before_the_task_is_done_gives_reward_zero(monkeypatch):
    turns, _, environment = play_text(
        monkeypatch, "leave", answer=lambda _: Observation("bye", done=True)
    )
    assert turns == [("bye", 0.0, True, False, False)]
    assert not environment.is_open


def test_an_environment_that_ends_with_the_task_done_gives_full_reward(monkeypatch):
    turns, _, _ = play_text(
        monkeypatch, "buy", answer=lambda action: Observation(action, done=True)
    )
    assert turns == [("buy", 1.0, True, False, False)]


def test_an_error_of_an_environment_is_raised(monkeypatch):
    with pytest.raises(OSError, match="lost"):
        play_text(monkeypatch, "look", answer=lambda _: OSError("lost"))


def test_a_live_episode_is_refused_during_a_simulated_training():
    async def live():
        await LiveWorld("shell").reset(TASK)

    with no_environment() as guard, pytest.raises(LiveEnvironmentRefused):
        asyncio.run(live())
    assert guard.num_refused == 1
