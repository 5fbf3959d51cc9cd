"""The ledger records the usage of a step: each sample and each retry, once."""

import pytest

from agentworld.engine.base import Completion
from agentworld.errors import EngineError
from agentworld.records.usage import Usage
from make import records

ANSWER = Completion("besa\n[0] ~", 100, 7, "stop", num_cached_tokens=40)
NO_OBSERVATION = ANSWER._replace(text="<think>", num_prompt_tokens=50, num_tokens=3)
RETRIES = {"attempts": 3, "retry_on": ["unparsable", "engine"]}
SAMPLING = {"temperature": 0.5}


def tokens(usage):
    """The token counts of a usage, whose engine time must be positive."""
    assert usage.engine_seconds > 0
    return usage[:3]


def script(*answers):
    """An engine function that gives these answers in order."""
    responses = iter(answers)
    return lambda messages: next(responses)


def step_usage(service, action="ls", **opening):
    """The usage of an episode's first step."""
    episode = service.reset(**opening)
    assert service.step(episode, action, 1).status_code == 200
    (step,) = service.ledger.episode(episode).steps
    return step.usage


def test_step_usage_counts_the_tokens_of_prompt_and_answer(serve):
    service = serve()
    usage = step_usage(service, "echo besa")
    (request,) = service.engine.requests
    length = sum(len(message["content"]) for message in request.messages)
    assert tokens(usage) == (length, 0, len("besa\n[0] ~"))


def test_step_usage_counts_cached_tokens_as_part_of_input_tokens(serve):
    assert tokens(step_usage(serve(script(ANSWER)))) == (100, 40, 7)


def test_step_usage_includes_its_retries(serve):
    service = serve(
        script(NO_OBSERVATION, NO_OBSERVATION, ANSWER), retry=RETRIES, sampling=SAMPLING
    )
    assert tokens(step_usage(service)) == (200, 120, 13)


def test_a_failed_engine_request_adds_no_tokens_to_step_usage(serve):
    service = serve(script(EngineError("gone"), ANSWER), retry=RETRIES)
    assert tokens(step_usage(service)) == (100, 40, 7)


def test_step_usage_includes_all_confidence_samples(serve):
    answers = ANSWER, ANSWER._replace(text="kolu\n[0] ~", num_tokens=9), EngineError("gone"), ANSWER
    service = serve(script(*answers), confidence={"num_samples": 4})
    assert tokens(step_usage(service)) == (300, 120, 23)


def test_step_usage_includes_the_samples_of_every_retry(serve):
    answers = NO_OBSERVATION, ANSWER, ANSWER, ANSWER
    settings = {"retry": RETRIES, "sampling": SAMPLING, "confidence": {"num_samples": 2}}
    assert tokens(step_usage(serve(script(*answers), **settings))) == (350, 160, 24)


def test_the_usage_of_a_failed_step_is_not_recorded(serve):
    service = serve(script(EngineError("gone"), NO_OBSERVATION, ANSWER))
    episode = service.reset()
    assert [service.step(episode, "ls", 1).status_code for _ in range(3)] == [503, 502, 200]
    (totals,) = service.ledger.counts.run_usage(episode=episode)
    assert (totals.num_steps, tokens(totals.usage)) == (1, (100, 40, 7))


def test_the_usage_of_a_repeated_step_is_counted_once(serve):
    service = serve()
    episode = service.reset()
    for _ in range(3):
        service.step(episode, "ls", 1)
    (step,) = service.ledger.episode(episode).steps
    (totals,) = service.ledger.counts.run_usage(episode=episode)
    assert (totals.num_steps, totals.usage) == (1, step.usage)


def test_run_usage_is_the_sum_of_the_usage_of_its_steps(serve):
    service = serve()
    run = service.run()
    episodes = [service.reset(run) for _ in range(2)]
    for number, episode in enumerate(episodes * 3):
        service.step(episode, f"echo {number}", number // 2 + 1)
    usages = [step.usage for e in episodes for step in service.ledger.episode(e).steps]
    (totals,) = service.ledger.counts.run_usage(run=run)
    assert (totals.num_episodes, totals.num_steps) == (2, len(usages)) == (2, 6)
    assert totals.usage[:3] == tuple(map(sum, zip(*(usage[:3] for usage in usages), strict=True)))
    seconds = sum(usage.engine_seconds for usage in usages)
    assert totals.usage.engine_seconds == pytest.approx(seconds)


def test_an_episode_response_has_the_usage_of_each_step(serve):
    service = serve(script(ANSWER, ANSWER._replace(num_cached_tokens=100)))
    episode = service.reset()
    for number in (1, 2):
        service.step(episode, "ls", number)
    steps = service.http("GET", f"/episodes/{episode}").json()["steps"]
    assert [step["usage"].pop("engine_seconds") > 0 for step in steps] == [True, True]
    assert [step["usage"] for step in steps] == [
        {"input_tokens": 100, "cached_tokens": 40, "output_tokens": 7},
        {"input_tokens": 100, "cached_tokens": 100, "output_tokens": 7},
    ]


def test_a_step_response_has_no_usage(serve):
    service = serve()
    assert "usage" not in service.step(service.reset(), "ls", 1).json()


def test_fork_usage_excludes_its_copied_steps(serve):
    service = serve(script(*[ANSWER] * 3))
    run = service.run()
    source = service.reset(run)
    for number in (1, 2):
        service.step(source, "ls", number)
    fork = service.reset(run, fork={"episode": source, "step": 2})
    (before,) = service.ledger.counts.run_usage(episode=fork)
    assert (before.num_steps, before.usage) == (0, Usage())
    service.step(fork, "ls", 3)
    copies = service.ledger.episode(fork).steps[:2]
    assert [step.usage for step in copies] == [Usage(), Usage()]
    (totals,) = service.ledger.counts.run_usage(run=run)
    assert (totals.num_steps, tokens(totals.usage)) == (3, (300, 120, 21))


def test_a_replay_has_zero_usage(serve):
    service = serve(script(ANSWER))
    run = service.run()
    source = service.reset(run, task=records.task().model_dump(mode="json"))
    service.step(source, "ls", 1)
    replay = service.reset(run, replay={"episode": source, "step": 1})
    service.step(replay, "ls", 1)
    (totals,) = service.ledger.counts.run_usage(episode=replay)
    assert (totals.num_steps, totals.usage) == (1, Usage())


def test_step_usage_is_not_part_of_its_head(serve):
    service = serve()
    name = service.reset()
    service.step(name, "ls", 1)
    episode = service.ledger.episode(name)
    (step,) = episode.steps
    assert step._replace(usage=Usage()).link(episode.first_head).head == step.head
