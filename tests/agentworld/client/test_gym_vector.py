import asyncio
from contextlib import closing, suppress

import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from hypothesis import given
from hypothesis import strategies as st

from agentworld.client.gym import SimulatorEnv, SimulatorVectorEnv
from agentworld.client.simulator import SimulatorClient
from agentworld.client.trajectory import TrajectoryLog
from agentworld.engine.base import Completion
from agentworld.errors import EngineError, InputError, SimulatorError, StoreError
from make import records
from make.examples import examples
from make.service import OPENING, listening, shell

pytestmark = pytest.mark.compute

SEEDED = {"sampling": {"seed_policy": "seeded"}}


def open_env(service, start=None, num_envs=3, **settings):
    client = service.client(attempts=1, **settings)
    return closing(SimulatorVectorEnv(client, OPENING, start, num_envs=num_envs))


def tasks(num):
    return [records.task(instruction=f"task {number}") for number in range(num)]


def failing_shell(*actions):
    """A shell whose engine fails at the first request for each of these actions."""
    remaining = list(actions)

    def answer(messages):
        action = messages[-1]["content"]
        if action in remaining:
            remaining.remove(action)
            return EngineError(f"gone at {action}", retry_after_seconds=len(action))
        return shell(messages)

    return answer


def requested_actions(service):
    """The actions that the engine got, in order."""
    return [request.messages[-1]["content"] for request in service.engine.requests]


def test_episodes_are_stepped_at_the_same_time(serve):
    requests, all_arrived = [], asyncio.Event()

    async def answer(messages):
        requests.append(messages)
        if len(requests) == 3:
            all_arrived.set()
        await all_arrived.wait()
        return shell(messages)

    with open_env(serve(answer)) as env:
        assert env.reset()[0] == ("", "", "")
        observations, rewards, terminated, truncated, infos = env.step(
            ("echo a", "echo b", "echo c")
        )
    assert observations == ("a\n[0] ~", "b\n[0] ~", "c\n[0] ~")
    for array, kind in [(rewards, np.float64), (terminated, np.bool_), (truncated, np.bool_)]:
        assert array.dtype == kind
        assert array.tolist() == [0, 0, 0]
    assert len(set(infos["episode_id"])) == 3


def test_vector_observations_and_actions_are_in_the_vector_spaces(serve):
    with open_env(serve()) as env:
        assert env.single_action_space.sample() in env.single_action_space
        observations, _ = env.reset()
        assert observations in env.observation_space
        actions = env.action_space.sample()
        assert actions in env.action_space
        assert env.step(actions)[0] in env.observation_space


def test_the_step_after_the_last_step_begins_the_next_episode(serve):
    service = serve()
    with open_env(service, tasks(4), num_envs=2) as env:
        assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        assert env.reset()[0] == ("task 0", "task 1")
        _, rewards, terminated, truncated, old_infos = env.step(("echo besa", "ls"))
        assert (rewards.tolist(), terminated.tolist()) == ([1.0, 0.0], [True, False])
        observations, rewards, terminated, truncated, new_infos = env.step(("ignored", "pwd"))
        assert observations == ("task 2", "[0] ~")
        assert [array.any() for array in (rewards, terminated, truncated)] == [False] * 3
        assert new_infos["step"].tolist() == [0, 2]
        assert new_infos["_reward_known"].tolist() == [False, True]
        assert new_infos["episode_id"][0] != old_infos["episode_id"][0]
        assert new_infos["episode_id"][1] == old_infos["episode_id"][1]
        _, _, terminated, truncated, _ = env.step(("ls", "ls"))
        assert (terminated.tolist(), truncated.tolist()) == ([False, False], [False, True])
    assert "ignored" not in requested_actions(service)


@pytest.mark.parametrize(
    ("seed", "seeds"),
    [(5, [5, 6, 7]), ([9, None, 4], [9, None, 4]), (np.array([1, 2, 3]), [1, 2, 3])],
)
def test_each_environment_has_a_seed_of_its_own(serve, seed, seeds):
    service = serve(**SEEDED)
    with open_env(service) as env:
        _, infos = env.reset(seed=seed)
    openings = [service.ledger.episode(name).opening for name in infos["episode_id"]]
    assert [opening.seed for opening in openings] == seeds


def test_starts_are_distributed_over_environments_and_options_apply_to_all(serve):
    with open_env(serve(), tasks(5)) as env:
        instructions = [env.reset()[0] for _ in range(2)]
        assert instructions == [("task 0", "task 1", "task 2"), ("task 3", "task 4", "task 0")]
        assert env.reset(options={"task": records.task()})[0] == ("report rimo.txt",) * 3


def test_info_values_that_an_environment_lacks_are_masked(serve):
    def answer(messages):
        logprobs = {"echo a": -0.5, "echo b": -2}
        logprob = logprobs.get(messages[-1]["content"])
        return Completion(shell(messages), 1, 1, "stop", mean_logprob=logprob)

    with open_env(serve(answer, confidence={"min_logprob": -1.0})) as env:
        env.reset()
        *_, infos = env.step(("echo b", "echo a", "echo c"))
        assert infos["mean_logprob"].tolist() == [-2.0, -0.5, 0.0]
        assert infos["_mean_logprob"].tolist() == [True, True, False]
        assert infos["low_confidence"].tolist() == [True, False, True]
        assert "agreement" not in infos
        *_, all_infos = DictInfoToList(env).step(("echo a",) * 3)
        assert [info["step"] for info in all_infos] == [2, 2, 2]


def test_a_failed_environment_does_not_lose_the_answers_of_the_others(serve):
    service = serve(failing_shell("echo bb"))
    actions = "echo a", "echo bb", "echo besa"
    with open_env(service, records.task(success={"closing": "echo besa", "output": "besa"})) as env:
        _, infos = env.reset()
        with pytest.raises(SimulatorError, match=r"of 3 environments 1 got no answer \(gone at"):
            env.step(actions)
        assert sorted(requested_actions(service)) == sorted(actions)
        observations, rewards, terminated, _, new_infos = env.step(actions)
        assert requested_actions(service)[3:] == ["echo bb"]
        assert observations == ("a\n[0] ~", "bb\n[0] ~", "besa\n[0] ~")
        assert (rewards.tolist(), terminated.tolist()) == ([0, 0, 1], [False, False, True])
        assert new_infos["step"].tolist() == [1, 1, 1]
        assert env.step(("echo a", "echo b", ""))[-1]["step"].tolist() == [2, 2, 0]
    for name in infos["episode_id"][:2]:
        assert [step.number for step in service.ledger.episode(name).steps] == [1, 2]


def test_failures_of_several_environments_are_raised_as_one_error(serve):
    with open_env(serve(failing_shell("ls", "pwd -P"))) as env:
        env.reset()
        with pytest.raises(SimulatorError, match="environments 0, 2 got no answer") as error:
            env.step(("ls", "echo a", "pwd -P"))
    assert (error.value.kind, error.value.retryable) == ("engine", True)
    assert error.value.retry_after_seconds == len("pwd -P")


def test_an_environment_with_an_unanswerable_step_can_be_reset_alone(serve):
    service = serve(context_tokens=400)
    actions = "echo a", "echo " + "b" * 400, "echo c"
    with open_env(service, {"turn_limit": 2}) as env:
        _, old_infos = env.reset()
        with pytest.raises(SimulatorError, match="environments 1 got no answer") as error:
            env.step(actions)
        assert (error.value.kind, error.value.retryable) == ("context", False)
        assert env.unanswered.tolist() == [False, True, False]
        observations, new_infos = env.reset(
            options={"reset_mask": env.unanswered, "initial_state": "b"}
        )
        assert observations == ("", "", "")
        assert new_infos["_episode_id"].tolist() == [False, True, False]
        observations, *_, infos = env.step((actions[0], "echo b", actions[2]))
        assert observations == ("a\n[0] ~", "b\n[0] ~", "c\n[0] ~")
        assert not env.unanswered.any()
    assert [len(action) for action in requested_actions(service)].count(6) == 3
    names = [old_infos["episode_id"][0], new_infos["episode_id"][1], old_infos["episode_id"][2]]
    assert infos["episode_id"].tolist() == names
    assert service.ledger.episode(names[1]).opening.start == "b"
    assert service.ledger.episode(old_infos["episode_id"][1]).closed == "closed"


def test_a_masked_reset_leaves_the_other_environments_unchanged(serve):
    with open_env(serve(), tasks(4), num_envs=2) as env:
        env.reset()
        env.step(("ls", "echo besa"))
        observations, infos = env.reset(options={"reset_mask": np.array([False, True])})
        assert observations == ("[0] ~", "task 3")
        assert infos["_step"].tolist() == [False, True]
        assert env.step(("pwd", "ls"))[-1]["step"].tolist() == [2, 1]


@pytest.mark.parametrize("mask", [np.array([0, 1, 0]), np.array([False] * 3), "all", 3])
def test_an_invalid_reset_mask_is_refused(serve, mask):
    with open_env(serve()) as env, pytest.raises(InputError, match="a reset_mask is 3 booleans"):
        env.reset(options={"reset_mask": mask})


def test_a_step_is_refused_until_all_environments_are_reset(serve):
    with open_env(serve()) as env:
        env.reset(options={"reset_mask": np.array([True, False, True])})
        with pytest.raises(InputError, match="call reset first"):
            env.step(("ls",) * 3)


def test_replacing_an_already_answered_action_is_refused(serve):
    service = serve(failing_shell("echo b"))
    with open_env(service, num_envs=2) as env:
        env.reset()
        with pytest.raises(SimulatorError):
            env.step(("echo a", "echo b"))
        with pytest.raises(InputError, match="the result of 'echo a' has not been read yet"):
            env.step(("echo c", "echo b"))
        assert len(service.engine.requests) == 2
        assert env.step(("echo a", "echo c"))[0] == ("a\n[0] ~", "c\n[0] ~")


def test_repeating_a_step_begins_the_episode_that_failed_to_begin(serve, losing):
    service, losses = serve(), iter([False, False, True, False])
    transport = losing(service.app, lambda path: path == "/episodes" and next(losses))
    client = SimulatorClient("http://simulator", transport=transport, attempts=1)
    start = records.task(turn_limit=2)
    with closing(SimulatorVectorEnv(client, OPENING, start, num_envs=2)) as env:
        env.reset()
        env.step(("echo besa", "ls"))
        with pytest.raises(SimulatorError, match="environments 0 got no answer"):
            env.step(("", "echo besa"))
        observations, rewards, terminated, _, infos = env.step(("", "echo besa"))
        assert observations == ("report rimo.txt", "besa\n[0] ~")
        assert (rewards.tolist(), terminated.tolist()) == ([0, 1], [False, True])
        assert infos["step"].tolist() == [0, 2]


def test_a_repeated_reset_applies_only_to_the_environments_that_failed(serve, losing):
    service, losses = serve(), iter([False, True, False, False, False, False])
    transport = losing(service.app, lambda path: path == "/episodes" and next(losses))
    client = SimulatorClient("http://simulator", transport=transport, attempts=1)
    with closing(SimulatorVectorEnv(client, OPENING, tasks(4), num_envs=3)) as env:
        with pytest.raises(SimulatorError, match="repeat the reset unchanged"):
            env.reset()
        with pytest.raises(InputError, match="call reset first"):
            env.step(("ls",) * 3)
        assert env.reset()[0] == ("task 0", "task 1", "task 2")
        assert transport.paths.count("/episodes") == 4


def test_after_a_failed_reset_a_step_in_the_old_episodes_is_refused(serve):
    with open_env(serve()) as env:
        env.reset()
        with pytest.raises(SimulatorError, match="environments 0, 1, 2 got no answer"):
            env.reset(seed=1)
        with pytest.raises(InputError, match="call reset first"):
            env.step(("ls",) * 3)


def test_errors_other_than_simulator_errors_are_raised_unchanged(serve, tmp_path):
    (tmp_path / "log").write_text("no folder")
    with open_env(serve(), trajectory=TrajectoryLog(tmp_path / "log")) as env:
        with pytest.raises(StoreError, match="cannot be written"):
            env.reset()
        with pytest.raises(InputError, match="there is no option 'tasks'"):
            env.reset(options={"tasks": [records.task()]})


@pytest.mark.parametrize(
    "call",
    [
        lambda env: env.step(("ls",)),
        lambda env: env.reset(seed=[1, 2]),
        lambda env: env.reset(options={"reset_mask": np.array([True, False])}),
        lambda env: SimulatorVectorEnv("http://127.0.0.1", OPENING, num_envs=0),
    ],
)
def test_arguments_that_do_not_match_the_number_of_environments_are_refused(serve, call):
    with open_env(serve(**SEEDED)) as env:
        env.reset()
        with pytest.raises(InputError, match="environments|3 booleans"):
            call(env)


def test_closing_ends_all_episodes_and_not_the_run(serve):
    service = serve()
    with open_env(service) as env:
        _, infos = env.reset()
    assert [service.ledger.episode(name).closed for name in infos["episode_id"]] == ["closed"] * 3
    assert service.ledger.run(env.run.id).closing is None
    env.close()


def test_gymnasiums_wrappers_and_vectors_accept_the_environments(serve):
    with listening(serve().app) as url:
        vector_env = SimulatorVectorEnv(url, OPENING, records.task(), num_envs=2)
        with closing(RecordEpisodeStatistics(vector_env)) as env:
            env.reset()
            *_, infos = env.step(("echo besa", "ls"))
            assert infos["episode"]["r"].tolist() == [1.0, 0.0]
        makers = [
            lambda: wrappers.RecordEpisodeStatistics(SimulatorEnv(url, OPENING, records.task()))
        ]
        with closing(SyncVectorEnv(makers * 2)) as env:
            assert env.reset()[0] == ("report rimo.txt",) * 2
            observations, rewards, *_, infos = env.step(("echo besa", "ls"))
            assert (observations, rewards.tolist()) == (("besa\n[0] ~", "[0] ~"), [1.0, 0.0])
            assert infos["episode"]["l"].tolist() == [1, 0]


def test_each_step_is_run_once_and_answered_despite_random_failures(serve, losing):
    """The engine fails at random requests, and random answers of the service are lost."""
    failures = {}

    def answer(messages):
        return EngineError("gone") if next(failures["engine"], False) else shell(messages)

    service = serve(answer)
    transport = losing(service.app, lambda _path: next(failures["answers"], False))

    @examples(10)
    @given(
        engine_failures=st.lists(st.booleans(), max_size=20),
        losses=st.lists(st.booleans(), max_size=20),
    )
    def play(engine_failures, losses):
        num_before = len(service.engine.requests)
        failures.update(engine=iter(()), answers=iter(()))
        client = SimulatorClient("http://simulator", transport=transport, attempts=1)
        env = SimulatorVectorEnv(client, OPENING, {"turn_limit": 2}, num_envs=3)
        with closing(env):
            failures.update(engine=iter(engine_failures), answers=iter(losses))
            names = play_five_turns(env)
        assert [len(service.ledger.episode(name).steps) for name in names] == [2] * 6
        num_requests = len(service.engine.requests) - num_before
        assert num_requests == 12 + sum(engine_failures[:num_requests])

    play()


def play_five_turns(env):
    """Plays two episodes of two steps in each environment, and retries each failed call."""
    retry(env.reset)
    names = set()
    for turn, step in enumerate([1, 2, 0, 1, 2]):
        actions = tuple(f"echo {turn} {number}" for number in range(3))
        observations, _, _, truncated, infos = retry(lambda actions=actions: env.step(actions))
        texts = tuple(f"{turn} {number}\n[0] ~" for number in range(3))
        assert observations == (texts if step else ("",) * 3)
        assert infos["step"].tolist() == [step] * 3
        assert truncated.tolist() == [step == 2] * 3
        names.update(infos["episode_id"])
    return names


def retry(call):
    """The first answer of a call; each failed try uses up a drawn failure."""
    for _ in range(50):
        with suppress(SimulatorError):
            return call()
    raise AssertionError("it never ended")
