"""An episode by hand in two worlds: a scripted environment, and a service with a fake engine."""

import asyncio
from collections.abc import Callable

import pytest

import make.service
from agentworld.domains.base import ActionError
from agentworld.domains.live import Observation
from agentworld.errors import EngineError, EnvironmentBroken, InputError, SimulatorError
from agentworld.operations.try_domain import open_trial
from make.live_domains import ScriptedDomain, registered
from make.service import Service

CLOSING = "echo besa"
"""The closing action of a scripted domain's task."""


def bash(action: str) -> Observation:
    """A live shell that knows `echo`."""
    return Observation(f"{action.removeprefix('echo ')}\n[0] ~")


@pytest.fixture
def use_shell(monkeypatch) -> Callable[..., ScriptedDomain]:
    """Replaces the environments of the shell by scripted ones with these answers."""

    def replace(answer=bash) -> ScriptedDomain:
        domain = ScriptedDomain(answer, name="shell")
        registered(monkeypatch, "shell", domain)
        return domain

    return replace


@pytest.fixture
def serve(tmp_path) -> Callable[..., Service]:
    return lambda answer=make.service.shell: make.service.service(tmp_path, answer)


def act(*texts: str, service: Service | None = None, **options):
    """The trial with its turns and its end."""

    async def work():
        client = service.client(attempts=1) if service else None
        context = open_trial("shell", 1, **{"has_goal": True, **options}, client=client)
        async with context as trial:
            turns = [await trial.act(text) for text in texts]
            return trial, turns, await trial.end()

    return asyncio.run(work())


def test_a_trial_without_a_simulator_has_only_live_results(use_shell):
    domain = use_shell()
    trial, (first, last), end = act("  ls\n", CLOSING)
    assert (trial.start.task, trial.start.text) == ("report rimo.txt", "rimo.txt: besa")
    assert (trial.start.simulator, trial.start.tools) == (None, ("bash",))
    assert (first.step, first.action, first.live) == (1, "ls", "ls\n[0] ~")
    assert (last.simulated, last.problem, last.verdicts, last.is_same) == (None, "", {}, None)
    assert (end.steps, end.ending, end.live_transcript) == (2, "task", True)
    assert (end.simulated_transcript, end.num_judged) == (None, 0)
    assert not domain.environments[0].is_open


def test_both_worlds_get_the_same_actions_and_the_rules_compare_the_observations(use_shell, serve):
    use_shell()
    service = serve(lambda messages: "kolu\n[0] ~" if messages[-1]["content"] == "ls" else "[0] ~")
    trial, (first, second), end = act("echo kolu ", "ls", service=service, has_goal=False)
    assert trial.start.simulator == service.simulator
    assert (first.live, first.simulated) == ("kolu\n[0] ~", "[0] ~")
    assert (first.verdicts, first.is_same) == ({"consistency": False}, False)
    assert (second.live, second.simulated, second.is_same) == ("ls\n[0] ~", "kolu\n[0] ~", False)
    assert (end.num_same, end.num_judged, end.ending) == (0, 2, "person")


def test_equal_observations_count_as_the_same(use_shell, serve):
    use_shell()
    _, (turn,), end = act("echo kolu", service=serve())
    assert (turn.simulated, turn.is_same) == ("kolu\n[0] ~", True)
    assert (end.num_same, end.num_judged) == (1, 1)


def test_the_simulators_history_contains_no_live_observations(use_shell, serve):
    use_shell()
    service = serve(lambda _: "imagined\n[0] ~")
    act("echo kolu", "ls", service=service, has_goal=False)
    messages = service.engine.requests[-1].messages
    assert [message["content"] for message in messages[1:]] == [
        "echo kolu",
        "imagined\n[0] ~",
        "ls",
    ]


@pytest.mark.compute
def test_both_worlds_begin_in_the_same_state(use_shell, serve):
    use_shell()
    service = serve()
    for has_goal in (True, False):
        act("ls", service=service, has_goal=has_goal)
        assert "rimo.txt: besa" in service.engine.requests[-1].messages[0]["content"]


def test_a_trial_is_a_closed_evaluation_run_in_the_ledger(use_shell, serve):
    use_shell()
    service = serve()
    act("ls", service=service)
    (run,) = service.ledger.readable_runs()[0]
    assert (run.agent, run.purpose, run.num_steps) == ("domain-try", "evaluation", 1)
    assert run.final_weights == run.opening.starting_weights
    (episode,) = service.ledger.episodes(run.id)
    assert episode.closed == "closed"


def test_each_worlds_success_is_judged_by_its_own_observations(use_shell, serve):
    domain = use_shell()
    domain.is_right = False
    _, (turn,), end = act(CLOSING, service=serve(lambda _: "kolu\n[0] ~"))
    assert not turn.is_same
    assert (end.live_transcript, end.live_state, end.simulated_transcript) == (True, False, False)


def test_a_failed_simulator_gets_no_more_actions_and_the_live_side_continues(use_shell, serve):
    use_shell()
    service = serve(lambda _: EngineError("the engine is gone", retryable=False))
    _, (first, second), end = act("ls", CLOSING, service=service)
    assert (first.live, first.simulated, first.is_same) == ("ls\n[0] ~", None, None)
    assert "the engine is gone" in first.problem
    assert (second.live, second.problem) == ("besa\n[0] ~", first.problem)
    assert len(service.engine.requests) == 1
    assert (end.live_transcript, end.simulated_transcript, end.num_judged) == (True, None, 0)


def test_a_text_without_an_action_reaches_no_world(use_shell, serve):
    domain = use_shell()
    service = serve()

    async def work():
        async with open_trial("shell", 1, has_goal=True, client=service.client()) as trial:
            with pytest.raises(ActionError, match="wrote no command"):
                await trial.act(" ")
            return await trial.end()

    assert asyncio.run(work()).steps == 0
    assert domain.environments[0].num_steps == 0
    assert service.engine.requests == []


def test_the_turn_limit_of_the_task_ends_a_trial_in_failure(use_shell):
    use_shell()
    trial, _, end = act("ls", "ls", "ls")
    assert (trial.is_over, end.ending, end.live_transcript) == (True, "limit", False)


def test_an_environment_that_ends_before_the_task_is_a_failure(use_shell):
    use_shell(lambda _: Observation("bye", done=True))
    for has_goal, success in ((True, False), (False, None)):
        trial, _, end = act("exit", has_goal=has_goal)
        assert (trial.is_over, end.ending, end.live_transcript) == (True, "environment", success)


def test_an_action_that_breaks_the_environment_ends_both_worlds(use_shell, serve):
    domain = use_shell(lambda _: EnvironmentBroken("the shell ended"))
    service = serve()
    with pytest.raises(EnvironmentBroken, match="the shell ended"):
        act("exit", service=service)
    assert not domain.environments[0].is_open
    (run,) = service.ledger.readable_runs()[0]
    assert run.closing


def test_a_simulator_without_the_domain_leaves_no_environment_open(monkeypatch, serve):
    domain = ScriptedDomain()
    registered(monkeypatch, "text", domain)

    async def work():
        async with open_trial("text", 1, has_goal=True, client=serve().client()):
            pytest.fail("a trial began")

    with pytest.raises(SimulatorError, match="this simulator has no domain 'text'"):
        asyncio.run(work())
    assert not domain.environments[0].is_open


def test_a_domain_without_environments_is_refused():
    async def work():
        async with open_trial("screen", 1, has_goal=True):
            pytest.fail("a trial began")

    with pytest.raises(InputError, match="no domain with an environment 'screen'"):
        asyncio.run(work())
