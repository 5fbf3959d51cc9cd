"""The ledger has a step's usage: every sample and every retry, once."""

import pytest

from agentworld.engine.base import Completion
from agentworld.errors import EngineError
from agentworld.records.usage import Usage
from make import records

SAID = Completion("besa\n[0] ~", 100, 7, "stop", num_cached_tokens=40)
NO_OBSERVATION = SAID._replace(text="<think>", num_prompt_tokens=50, num_tokens=3)
RETRIES = {"attempts": 3, "retry_on": ["unparsable", "engine"]}
DRAWN = {"temperature": 0.5}


def tokens(usage):
    """Without the engine's time, which must only be positive."""
    assert usage.engine_seconds > 0
    return usage[:3]


def answering(*answers):
    """An engine's answers in their order."""
    told = iter(answers)
    return lambda messages: next(told)


def taken(served, action="ls", **opening):
    """The usage of an episode's first step."""
    episode = served.reset(**opening)
    assert served.step(episode, action, 1).status_code == 200
    (step,) = served.ledger.episode(episode).steps
    return step.usage


def test_step_usage_counts_the_tokens_of_prompt_and_answer(serve):
    served = serve()
    usage = taken(served, "echo besa")
    (asked,) = served.engine.requests
    read = sum(len(message["content"]) for message in asked.messages)
    assert tokens(usage) == (read, 0, len("besa\n[0] ~"))


def test_step_usage_counts_cached_tokens_as_part_of_input_tokens(serve):
    assert tokens(taken(serve(answering(SAID)))) == (100, 40, 7)


def test_step_usage_includes_its_retries(serve):
    served = serve(answering(NO_OBSERVATION, NO_OBSERVATION, SAID), retry=RETRIES, sampling=DRAWN)
    assert tokens(taken(served)) == (200, 120, 13)


def test_a_failed_engine_request_adds_no_tokens_to_step_usage(serve):
    served = serve(answering(EngineError("gone"), SAID), retry=RETRIES)
    assert tokens(taken(served)) == (100, 40, 7)


def test_step_usage_includes_all_confidence_samples(serve):
    answers = SAID, SAID._replace(text="kolu\n[0] ~", num_tokens=9), EngineError("gone"), SAID
    served = serve(answering(*answers), confidence={"num_samples": 4})
    assert tokens(taken(served)) == (300, 120, 23)


def test_step_usage_includes_the_samples_of_every_retry(serve):
    answers = NO_OBSERVATION, SAID, SAID, SAID
    settings = {"retry": RETRIES, "sampling": DRAWN, "confidence": {"num_samples": 2}}
    assert tokens(taken(serve(answering(*answers), **settings))) == (350, 160, 24)


def test_the_usage_of_a_failed_step_is_not_recorded(serve):
    served = serve(answering(EngineError("gone"), NO_OBSERVATION, SAID))
    episode = served.reset()
    assert [served.step(episode, "ls", 1).status_code for _ in range(3)] == [503, 502, 200]
    (used,) = served.ledger.counts.run_usage(episode=episode)
    assert (used.num_steps, tokens(used.usage)) == (1, (100, 40, 7))


def test_the_usage_of_a_repeated_step_is_counted_once(serve):
    served = serve()
    episode = served.reset()
    for _ in range(3):
        served.step(episode, "ls", 1)
    (step,) = served.ledger.episode(episode).steps
    (used,) = served.ledger.counts.run_usage(episode=episode)
    assert (used.num_steps, used.usage) == (1, step.usage)


def test_run_usage_is_the_sum_of_the_usage_of_its_steps(serve):
    served = serve()
    run = served.run()
    episodes = [served.reset(run) for _ in range(2)]
    for number, episode in enumerate(episodes * 3):
        served.step(episode, f"echo {number}", number // 2 + 1)
    usages = [step.usage for each in episodes for step in served.ledger.episode(each).steps]
    (used,) = served.ledger.counts.run_usage(run=run)
    assert (used.num_episodes, used.num_steps) == (2, len(usages)) == (2, 6)
    assert used.usage[:3] == tuple(map(sum, zip(*(each[:3] for each in usages), strict=True)))
    seconds = sum(each.engine_seconds for each in usages)
    assert used.usage.engine_seconds == pytest.approx(seconds)


def test_an_episode_response_has_the_usage_of_each_step(serve):
    served = serve(answering(SAID, SAID._replace(num_cached_tokens=100)))
    episode = served.reset()
    for number in (1, 2):
        served.step(episode, "ls", number)
    told = served.http("GET", f"/episodes/{episode}").json()["steps"]
    assert [step["usage"].pop("engine_seconds") > 0 for step in told] == [True, True]
    assert [step["usage"] for step in told] == [
        {"input_tokens": 100, "cached_tokens": 40, "output_tokens": 7},
        {"input_tokens": 100, "cached_tokens": 100, "output_tokens": 7},
    ]


def test_a_step_response_has_no_usage(serve):
    served = serve()
    assert "usage" not in served.step(served.reset(), "ls", 1).json()


def test_fork_usage_excludes_its_copied_steps(serve):
    served = serve(answering(*[SAID] * 3))
    run = served.run()
    source = served.reset(run)
    for number in (1, 2):
        served.step(source, "ls", number)
    fork = served.reset(run, fork={"episode": source, "step": 2})
    (before,) = served.ledger.counts.run_usage(episode=fork)
    assert (before.num_steps, before.usage) == (0, Usage())
    served.step(fork, "ls", 3)
    copies = served.ledger.episode(fork).steps[:2]
    assert [step.usage for step in copies] == [Usage(), Usage()]
    (used,) = served.ledger.counts.run_usage(run=run)
    assert (used.num_steps, tokens(used.usage)) == (3, (300, 120, 21))


def test_a_replay_has_zero_usage(serve):
    served = serve(answering(SAID))
    run = served.run()
    source = served.reset(run, task=records.task().model_dump(mode="json"))
    served.step(source, "ls", 1)
    replay = served.reset(run, replay={"episode": source, "step": 1})
    served.step(replay, "ls", 1)
    (used,) = served.ledger.counts.run_usage(episode=replay)
    assert (used.num_steps, used.usage) == (1, Usage())


def test_step_usage_is_not_part_of_its_head(serve):
    served = serve()
    name = served.reset()
    served.step(name, "ls", 1)
    episode = served.ledger.episode(name)
    (step,) = episode.steps
    assert step._replace(usage=Usage()).link(episode.first_head).head == step.head
