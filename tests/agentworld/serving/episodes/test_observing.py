"""Requests to an engine for one observation, and its confidence."""

import asyncio

import pytest

from agentworld.engine.base import Completion
from agentworld.engine.fake import FakeEngine
from agentworld.errors import EngineError
from agentworld.records.message import Message
from agentworld.records.simulator import ConfidencePolicy
from agentworld.serving.episodes.observing import Observer, judge_answer
from make import records

MESSAGES = [Message(role="user", content="ls")]


def observe(engine, **confidence):
    observer = Observer(records.manifest(confidence=confidence), engine)
    return asyncio.run(observer.observe(MESSAGES, None, "episode-7"))


@pytest.mark.parametrize("num_samples", [1, 3])
def test_engine_requests_have_the_episode_as_affinity(num_samples):
    engine = FakeEngine(lambda messages: "[0] ~")
    observe(engine, num_samples=num_samples)
    assert [request.affinity for request in engine.requests] == ["episode-7"] * num_samples


@pytest.mark.parametrize("num_samples", [1, 3])
def test_engine_requests_use_the_pinned_sampling(num_samples):
    manifest = records.manifest(confidence={"num_samples": num_samples})
    engine = FakeEngine(lambda messages: "[0] ~")
    asyncio.run(Observer(manifest, engine).observe(MESSAGES, 7, "episode-7"))
    assert [request.sampling for request in engine.requests] == [manifest.sampling] * num_samples


@pytest.mark.parametrize("num_samples", [1, 2])
def test_a_cut_off_answer_to_an_overlong_prompt_is_a_context_error(num_samples):
    error = EngineError("raise max_tokens", kind="cut-off")
    error.num_prompt_tokens = 1024
    with pytest.raises(EngineError, match=r"1024 tokens and an answer of 256 do not fit") as caught:
        observe(FakeEngine(lambda messages: error), num_samples=num_samples)
    assert (caught.value.kind, caught.value.retryable) == ("context", False)
    error.num_prompt_tokens = 768
    with pytest.raises(EngineError, match="raise max_tokens"):
        observe(FakeEngine(lambda messages: error), num_samples=num_samples)


POLICY = ConfidencePolicy(min_logprob=-1.0, min_agreement=0.5, num_samples=2)


@pytest.mark.parametrize(
    ("logprob", "agreement", "low"),
    [
        (-1.0, 0.5, False),
        (-1.1, 1.0, True),
        (-0.1, 0.4, True),
        (None, 1.0, True),
        (-0.1, None, True),
    ],
)
def test_confidence_is_low_unless_every_threshold_is_known_to_be_reached(logprob, agreement, low):
    assert judge_answer(POLICY, logprob, agreement) == (logprob, agreement, low)


def test_confidence_is_not_low_without_a_threshold():
    assert not judge_answer(ConfidencePolicy(), None, None).low


def test_an_answer_without_log_probability_fails_a_logprob_threshold():
    with pytest.raises(EngineError, match="not sure of its answer") as caught:
        observe(FakeEngine(lambda messages: "[0] ~"), min_logprob=-1.0, below="refuse")
    assert caught.value.kind == "unsure"
    completion = Completion("[0] ~", 10, 3, "stop", mean_logprob=-0.5)
    assert not observe(FakeEngine(lambda messages: completion), min_logprob=-1.0).confidence.low


def test_an_answer_whose_further_samples_all_failed_has_low_confidence():
    answers = iter(["[0] ~", EngineError("gone")])
    engine = FakeEngine(lambda messages: next(answers))
    assert observe(engine, num_samples=2, min_agreement=0.5).confidence == (None, None, True)
