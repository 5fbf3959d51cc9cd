import re
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from agentworld.client.gym import SimulatorEnv
from agentworld.client.gym.waiting import THREAD
from agentworld.client.simulator import SimulatorClient
from agentworld.client.trajectory import TrajectoryLog, read_trajectory
from agentworld.engine.base import Completion
from agentworld.errors import EngineError, InputError, SimulatorError
from agentworld.records.episode import Source
from make import records
from make.service import OPENING, listening

pytestmark = pytest.mark.compute

SEEDED = {"sampling": {"seed_policy": "seeded"}}
TASK = records.task()


def open_env(service, start=None, run=OPENING, **settings):
    return SimulatorEnv(service.client(attempts=1, **settings), run, start)


def run_check(env):
    """Runs Gymnasium's own check, which reports most problems as warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)


@pytest.mark.parametrize("start", [None, TASK, {"turn_limit": 1}], ids=["none", "task", "limit"])
def test_gymnasiums_check_accepts_a_seeded_simulator(serve, start):
    with listening(serve(**SEEDED).app) as url, SimulatorEnv(url, OPENING, start) as env:
        run_check(env)


def test_gymnasiums_check_of_an_unseeded_simulator_fails_with_the_reason(serve):
    with (
        listening(serve().app) as url,
        SimulatorEnv(url, OPENING, TASK) as env,
        pytest.raises(SimulatorError) as error,
    ):
        check_env(env)
    message = str(error.value)
    assert "the seed 123 cannot be used: the simulator's seed policy is `refuse`" in message
    assert "name a simulator whose policy is `seeded`" in message


def test_gymnasiums_check_accepts_a_replayed_episode(serve):
    with listening(serve(**SEEDED).app) as url, SimulatorEnv(url, OPENING) as env:
        env.action_space.seed(123)  # the seed of its check
        actions = [env.action_space.sample() for _ in range(2)]
        _, info = env.reset()
        for action in actions:
            env.step(action)
        replay = Source(episode=info["episode_id"], step=2)
        with SimulatorEnv(url, env.run.id, {"replay": replay}) as other_env:
            other_env.action_space.seed(123)
            run_check(other_env)


class UnnamedEnv(SimulatorEnv):
    """An environment without episode IDs, which differ for each episode."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.spec = replace(self.spec, nondeterministic=False, kwargs=self.spec.kwargs)

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed, options=options)
        return observation, {**info, "episode_id": ""}

    def step(self, action):
        *outcome, info = super().step(action)
        return *outcome, {**info, "episode_id": ""}


def test_equal_seeds_and_actions_give_equal_results_except_the_episode_id(serve):
    tasks = [TASK, records.task(instruction="another")]
    with listening(serve(**SEEDED).app) as url, UnnamedEnv(url, OPENING, tasks) as env:
        run_check(env)


def test_reset_returns_the_task_instruction_and_the_last_step_the_reward(serve):
    service = serve()
    with open_env(service, TASK) as env:
        instruction, first_info = env.reset()
        assert instruction == TASK.instruction
        text, reward, *ends, info = env.step("ls")
        assert (text, reward, ends, info["reward_known"]) == ("[0] ~", 0.0, [False, False], False)
        text, reward, *ends, info = env.step("echo besa")
        assert (reward, ends, info["reward_known"]) == (1.0, [True, False], True)
    digest = records.manifest().digest
    assert first_info["simulator"] == info["simulator"] == digest
    assert first_info["run"] == info["run"] == env.run.id
    assert first_info["episode_id"] == info["episode_id"]
    assert (first_info["step"], info["step"]) == (0, 2)
    assert len(service.ledger.episode(info["episode_id"]).steps) == 2


def test_a_known_reward_of_zero_is_marked_as_known(serve):
    with open_env(serve(), TASK) as env:
        env.reset()
        _, reward, terminated, _, info = env.step("echo wrong")
    assert (reward, terminated, info["reward_known"]) == (0.0, True, True)


def test_the_turn_limit_truncates_and_does_not_terminate(serve):
    with open_env(serve(), {"turn_limit": 1}) as env:
        assert env.reset()[0] == ""
        _, _, terminated, truncated, info = env.step("ls")
    assert (terminated, truncated, info["reward_known"]) == (False, True, False)


def test_the_info_contains_the_confidence_of_the_simulator(serve):
    def answer(_messages):
        return Completion("[0] ~", 1, 1, "stop", mean_logprob=-2.0)

    with open_env(serve(answer, confidence={"min_logprob": -1.0})) as env:
        env.reset()
        *_, info = env.step("ls")
    assert (info["mean_logprob"], info["agreement"], info["low_confidence"]) == (-2.0, None, True)


def test_the_seed_of_a_reset_is_the_seed_of_the_episode(serve):
    service = serve(**SEEDED)
    with open_env(service) as env:
        _, info = env.reset(seed=7)
        _, other_info = env.reset()
    assert service.ledger.episode(info["episode_id"]).opening.seed == 7
    assert service.ledger.episode(other_info["episode_id"]).opening.seed is None


def test_a_seed_that_the_simulator_cannot_use_is_refused(serve):
    with open_env(serve()) as env:
        with pytest.raises(SimulatorError, match="the seed 7 cannot be used") as error:
            env.reset(seed=7)
        assert error.value.kind == "input"
        assert env.run.num_episodes == 0


def test_a_seed_beyond_the_exact_integers_of_json_is_refused(serve):
    with open_env(serve(**SEEDED)) as env, pytest.raises(InputError, match="seed"):
        env.reset(seed=2**53)


def test_options_hold_for_one_episode(serve):
    service = serve()
    with open_env(service) as env:
        choices = {"initial_state": "a.txt", "turn_limit": 5, "simulation_instruction": "be slow"}
        names = [env.reset(options=options)[1]["episode_id"] for options in (choices, None)]
        first, second = (service.ledger.episode(name).opening for name in names)
        assert {name: getattr(first, name) for name in choices} == choices
        fields = second.model_dump(exclude_defaults=True)
        assert fields == {"run": env.run.id, "domain": "shell"}
        assert env.reset(options={"task": TASK})[0] == TASK.instruction


def test_an_episode_is_forked_and_replayed_by_options(serve):
    service = serve()
    with open_env(service, TASK) as env:
        _, info = env.reset()
        observation = env.step("ls")[0]
        source = Source(episode=info["episode_id"], step=1)
        assert env.reset(options={"fork": source})[1]["step"] == 1
        env.reset(options={"replay": source})
        num_requests = len(service.engine.requests)
        assert env.step("ls")[0] == observation
        with pytest.raises(SimulatorError, match="the record ends"):
            env.step("pwd")
    assert len(service.engine.requests) == num_requests


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"reset_mask": [True]}, "there is no option 'reset_mask'; there are task, domain,"),
        ({"run": "another"}, "there is no option 'run'"),
        ({"seed": 3}, "there is no option 'seed'"),
        ({"task": None, "turn_limit": 0}, "the start of the episode is invalid: turn_limit"),
        ({"task": "report rimo.txt"}, "the start of the episode is invalid: task"),
        (
            {"initial_state": "b.txt", "turn_limit": 9},
            "brings its own initial_state and turn_limit",
        ),
    ],
)
def test_an_unknown_invalid_or_ineffective_option_is_refused(serve, options, problem):
    with open_env(serve(), TASK) as env:
        with pytest.raises(InputError, match=problem):
            env.reset(options=options)
        assert env.reset()[0] == TASK.instruction


@pytest.mark.parametrize("start", [[], [3], "task", {"seed": 3}, {"task": TASK, "turn_limit": 2}])
def test_an_invalid_start_is_refused_before_a_run_is_opened(serve, start):
    service = serve()
    with pytest.raises(InputError):
        open_env(service, start)
    assert service.ledger.runs() == []


def tasks(num):
    return [records.task(instruction=f"task {number}") for number in range(num)]


def test_tasks_rotate_and_a_seed_selects_the_task_to_continue_with(serve):
    with open_env(serve(**SEEDED), tasks(3)) as env:
        instructions = [env.reset()[0] for _ in range(4)]
        assert instructions == ["task 0", "task 1", "task 2", "task 0"]
        assert [env.reset(seed=5)[0], env.reset()[0]] == ["task 2", "task 0"]
        assert env.reset(options={"task": TASK})[0] == TASK.instruction
        assert env.reset()[0] == "task 1"


def test_reset_ends_the_previous_episode_before_the_next_episode_begins(serve, losing):
    transport = losing(serve().app, lambda path: False)
    with SimulatorEnv(SimulatorClient("http://simulator", transport=transport), OPENING) as env:
        _, info = env.reset()
        env.reset()
        close_path = f"/episodes/{info['episode_id']}/close"
        assert transport.paths == ["/runs", "/episodes", close_path, "/episodes"]


def test_a_failed_reset_does_not_advance_the_task_rotation(serve):
    with open_env(serve(), tasks(2)) as env:
        with pytest.raises(SimulatorError):
            env.reset(seed=1)
        assert env.reset()[0] == "task 0"


def test_an_engine_failure_is_retryable_and_the_repeated_step_is_recorded_once(serve):
    answers = iter([EngineError("gone"), "[0] ~", "[1] ~"])
    service = serve(lambda _messages: next(answers))
    with open_env(service) as env:
        _, info = env.reset()
        with pytest.raises(SimulatorError, match="gone") as error:
            env.step("ls")
        assert (error.value.kind, error.value.retryable) == ("engine", True)
        assert env.step("ls")[0] == "[0] ~"
        assert env.step("ls")[-1]["step"] == 2
    observations = [step.observation for step in service.ledger.episode(info["episode_id"]).steps]
    assert observations == ["[0] ~", "[1] ~"]


def test_repeating_a_step_after_a_lost_response_asks_the_engine_once(serve, losing):
    service, losses = serve(), iter([True, False])
    transport = losing(service.app, lambda path: path == "/steps" and next(losses))
    client = SimulatorClient("http://simulator", transport=transport, attempts=1)
    with SimulatorEnv(client, OPENING) as env:
        env.reset()
        with pytest.raises(SimulatorError, match="did not answer"):
            env.step("echo a")
        observation, *_, info = env.step("echo a")
    assert (observation, info["step"], len(service.engine.requests)) == ("a\n[0] ~", 1, 1)


def test_a_step_outside_of_an_episode_is_refused(serve):
    with open_env(serve(), {"turn_limit": 1}) as env:
        for _ in range(2):
            with pytest.raises(InputError, match="call reset first"):
                env.step("ls")
            env.reset()
            env.step("ls")


@pytest.mark.parametrize("leave", [SimulatorEnv.reset, SimulatorEnv.close])
def test_reset_and_close_end_the_current_episode_and_not_the_run(serve, tmp_path, leave):
    service = serve()
    with TrajectoryLog(tmp_path / "log") as log, open_env(service, trajectory=log) as env:
        _, info = env.reset()
        env.step("ls")
        leave(env)
    assert service.ledger.episode(info["episode_id"]).closed == "closed"
    assert service.ledger.run(env.run.id).closing is None
    begin, step, *_, end = read_trajectory(tmp_path / "log")
    assert (begin.episode, step.action) == (info["episode_id"], "ls")
    assert end.reason == "closed"


def threads():
    return [thread.name for thread in threading.enumerate()]


def test_a_closed_environment_refuses_a_reset_and_may_be_closed_again(serve):
    env = open_env(serve())
    assert THREAD in threads()
    env.close()
    env.close()
    assert THREAD not in threads()
    with pytest.raises(InputError, match="is closed; open another one"):
        env.reset()


def test_a_run_that_cannot_be_resumed_leaves_no_thread(serve):
    with pytest.raises(SimulatorError, match="nobody"):
        open_env(serve(), run="nobody")
    assert THREAD not in threads()


def test_an_environment_made_from_the_spec_joins_the_same_run(serve):
    with (
        listening(serve().app) as url,
        SimulatorEnv(url, OPENING, tasks(2)) as env,
        gymnasium.make(env.spec) as other_env,
    ):
        assert other_env.unwrapped.run.id == env.run.id
        assert other_env.reset()[0] == env.reset()[0] == "task 0"


def test_a_credential_in_the_address_is_not_in_the_environments_spec(serve):
    with listening(serve().app) as url:
        address = url.replace("://", "://run:sesame@")
        with SimulatorEnv(address, OPENING) as env, gymnasium.make(env.spec) as other:
            assert "sesame" not in f"{env.spec} {env.spec.pprint(disable_print=True)} {other.spec}"
            assert other.reset()[1]["run"] == env.run.id


def test_other_modules_of_the_client_do_not_import_gymnasium():
    names = "answers base simulator trajectory".split()
    imports = "".join(f"import agentworld.client.{name}\n" for name in names)
    command = [sys.executable, "-c", f"{imports}import sys; print('gymnasium' in sys.modules)"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == "False\n"


def test_the_guides_example_runs(serve, tmp_path):
    guide = (Path(__file__).parents[3] / "docs/guides/protocols.md").read_text()
    section = re.search(r"^## Gymnasium$(.*?)(?=^## |\Z)", guide, re.M | re.S)[1]
    example = tmp_path / "example.py"
    with listening(serve().app) as url:
        code = re.search(r"```python\n(.*?)```", section, re.S)[1]
        assert "http://127.0.0.1:8000" in code
        example.write_text(code.replace("http://127.0.0.1:8000", url))
        command = [sys.executable, str(example)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.stderr, result.stdout.split()[2:]) == ("", ["3"])
