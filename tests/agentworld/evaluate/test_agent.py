import asyncio
from typing import NamedTuple

import pytest

from agentworld.domains.base import domain_of
from agentworld.domains.live import live_domain
from agentworld.engine.fake import FakeEngine
from agentworld.errors import EngineError, EnvironmentBroken, EnvironmentUnavailable, SimulatorError
from agentworld.evaluate.agent import Policy, agent_score, gain, held_out_tasks, play, play_all
from agentworld.recipes.serve import ValidateRecipe
from agentworld.records.progress import ignore_progress
from agentworld.records.simulator import Sampling
from agentworld.records.trajectory_log import Sampled
from agentworld.scoring.success import outcome
from make import records

RECIPE = ValidateRecipe(num_tasks=5, num_resamples=100)
TASK = records.task()
SHELL = domain_of("shell")


class Step(NamedTuple):
    observation: str
    reward: float | None
    done: bool
    truncated: bool
    low_confidence: bool = False


class EchoWorld:
    """Answers every `echo` as a shell would, or raises its error.

    Its observation for the action `unsure` has a low confidence.
    """

    def __init__(self, error=None, at_reset=None, unsure=None):
        self._tasks = {}
        self._steps = {}
        self._error = error
        self._at_reset = at_reset
        self._unsure = unsure
        self.sampled = []
        self.num_open = self.most_open = 0

    async def reset(self, task):
        if self._at_reset:
            raise self._at_reset
        episode = f"{len(self._tasks)}"
        self._tasks[episode], self._steps[episode] = task, 0
        self.num_open += 1
        self.most_open = max(self.most_open, self.num_open)
        return episode

    async def step(self, episode, action, sampled=None):
        self.sampled.append(sampled)
        await asyncio.sleep(0)
        if self._error:
            raise self._error
        self._steps[episode] += 1
        observation = action.removeprefix("echo ") + "\n[0] ~"
        task = self._tasks[episode]
        result = outcome(SHELL, task, task.turn_limit, self._steps[episode], action, observation)
        self.num_open -= result.done
        return Step(observation, *result, low_confidence=action == self._unsure)


def play_task(answer, world=None):
    policy = Policy(FakeEngine(answer), Sampling())
    return asyncio.run(play(policy, SHELL, world or EchoWorld(), TASK))


def test_an_episode_ends_in_success():
    episode = play_task(lambda _: "echo besa")
    assert episode.success is True
    assert [(turn.action, turn.observation) for turn in episode.turns] == [
        ("echo besa", "besa\n[0] ~")
    ]


def test_a_wrong_final_output_is_a_failure():
    assert play_task(lambda _: "echo kolu").success is False


def test_an_episode_without_a_closing_action_fails_at_the_turn_limit():
    episode = play_task(lambda _: "ls")
    assert episode.success is False
    assert len(episode.turns) == TASK.turn_limit


def test_the_policy_gets_the_task_its_actions_and_the_observations():
    engine = FakeEngine(lambda messages: "ls" if len(messages) == 1 else "echo besa")
    asyncio.run(play(Policy(engine, Sampling()), SHELL, EchoWorld(), TASK))
    contents = [message["content"] for message in engine.requests[-1].messages]
    assert contents == ["report rimo.txt", "ls", "ls\n[0] ~"]


def test_an_action_is_the_first_line_of_the_policys_text():
    assert play_task(lambda _: "\n echo besa \nand then I am done").success is True


def test_the_domain_parses_the_action_from_the_policys_text():
    world, text = EchoWorld(), " echo besa\nand then\n"
    engine = FakeEngine(lambda _: text)
    episode = asyncio.run(play(Policy(engine, Sampling()), domain_of("text"), world, TASK))
    assert episode.turns[0].action == text.strip()


def test_a_world_gets_the_policys_full_text_and_weights_digest():
    world, policy = EchoWorld(), FakeEngine(lambda _: "\n echo besa \nand then")
    weights = records.digest("weights")
    asyncio.run(play(Policy(policy, Sampling(), weights), SHELL, world, TASK))
    assert world.sampled == [Sampled("\n echo besa \nand then", records.digest("weights"))]


@pytest.mark.parametrize(
    "failure",
    ["  \n", EngineError("too long", kind="cut-off"), EngineError("empty", kind="unparsable")],
    ids=["blank", "cut off", "empty"],
)
def test_a_policy_without_an_action_fails_the_episode(failure):
    assert play_task(lambda _: failure).success is False


@pytest.mark.parametrize(
    ("policy", "world"),
    [
        (EngineError("gone"), EchoWorld()),
        ("ls", EchoWorld(SimulatorError("gone"))),
        ("ls", EchoWorld(EngineError("cut off", kind="cut-off"))),
        ("ls", EchoWorld(at_reset=SimulatorError("gone"))),
    ],
    ids=["policy's engine", "simulator", "simulator's engine", "reset"],
)
def test_an_engine_or_simulator_failure_leaves_a_hole(policy, world):
    episode = play_task(lambda _: policy, world)
    assert episode.success is None
    assert episode.problem


@pytest.mark.parametrize(("unsure", "success"), [("ls", True), ("echo besa", None)])
def test_a_low_confidence_end_leaves_a_hole(unsure, success):
    episode = play_task(
        lambda messages: "ls" if len(messages) == 1 else "echo besa", EchoWorld(unsure=unsure)
    )
    assert (episode.success, len(episode.turns)) == (success, 2)
    assert bool(episode.problem) == (success is None)


def test_a_sandbox_that_breaks_at_the_reset_leaves_a_hole():
    assert play_task(lambda _: "ls", EchoWorld(at_reset=EnvironmentBroken("gone"))).success is None


def test_a_sandbox_broken_by_a_command_is_the_agents_failure_without_a_turn():
    episode = play_task(lambda _: "ls", EchoWorld(EnvironmentBroken("gone")))
    assert (episode.success, episode.turns, episode.problem) == (False, (), "gone")


def test_an_unavailable_sandbox_raises():
    with pytest.raises(EnvironmentUnavailable):
        play_task(lambda _: "ls", EchoWorld(at_reset=EnvironmentUnavailable("none")))


def play_tasks(answer, tasks, world=None, tick=ignore_progress, concurrency=16):
    engine, world = FakeEngine(answer), world or EchoWorld()
    return asyncio.run(
        play_all(Policy(engine, Sampling()), SHELL, world, tasks, tick, concurrency=concurrency)
    )


def test_concurrent_episodes_are_limited_and_results_keep_the_task_order():
    tasks = [records.task(id=f"{n}") for n in range(9)]
    world, ticks = EchoWorld(), []
    episodes = play_tasks(lambda _: "echo besa", tasks, world, lambda *tick: ticks.append(tick), 3)
    assert [episode.task.id for episode in episodes] == [task.id for task in tasks]
    assert world.most_open == 3
    assert ticks == [(done, 9) for done in range(1, 10)]


def test_an_error_is_raised_if_no_episode_could_be_played():
    with pytest.raises(EngineError, match="none of 2 episodes could be played: gone"):
        play_tasks(lambda _: "ls", [TASK, TASK], EchoWorld(SimulatorError("gone")))


def test_the_held_out_tasks_are_determined_by_the_seed():
    def task_of(seed):
        return live_domain("shell").task(seed, held_out=True)

    tasks = held_out_tasks(RECIPE, task_of)
    assert tasks == held_out_tasks(RECIPE, task_of)
    assert len({task.id for task in tasks}) == 5
    assert {task.domain for task in tasks} == {"shell"}
    other_recipe = RECIPE.model_copy(update={"seed": 1})
    assert not set(held_out_tasks(other_recipe, task_of)) & set(tasks)


def episodes_of(successes, families=("find", "edit")):
    tasks = [records.task(id=f"{n}", family=families[n % 2]) for n in range(len(successes))]
    episodes = play_tasks(lambda _: "echo besa", tasks)
    return [episode._replace(success=win) for episode, win in zip(episodes, successes, strict=True)]


def test_a_score_contains_simulated_and_live_success_and_success_by_family():
    score = agent_score(episodes_of([1, 1, 1, 1]), episodes_of([True, False, True, None]), RECIPE)
    assert (score.simulated.mean, score.live.mean, score.live.holes) == (1, 2 / 3, 1)
    assert {name: figure.mean for name, figure in score.by_family.items()} == {"edit": 0, "find": 1}


def test_the_gain_is_computed_per_task():
    result = gain(episodes_of([True, True, None]), episodes_of([False, True, True]), RECIPE)
    assert (result.mean, result.num, result.holes) == (0.5, 2, 1)


def test_agents_that_played_different_tasks_are_not_compared():
    with pytest.raises(ValueError, match="different tasks"):
        gain(episodes_of([True, True]), episodes_of([True, True], ("edit", "find")), RECIPE)
