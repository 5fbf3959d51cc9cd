import asyncio
import json

import httpx
import pytest

from agentworld.engine.openai import OpenAIEngine, request_body
from agentworld.errors import EngineError, InputError
from agentworld.records.simulator import Sampling

ASKED = [{"role": "user", "content": "ls"}]
GREEDY = Sampling()
DRAWN = Sampling(temperature=0.7, top_p=0.9, top_k=5)


def answer(content="besa", finish_reason="stop"):
    return {
        "choices": [{"message": {"content": content}, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }


def engine(status=200, body=None, **settings):
    transport = httpx.MockTransport(lambda request: httpx.Response(status, json=body))
    return OpenAIEngine("http://engine", "m", transport=transport, **settings)


def complete(engine, sampling=GREEDY):
    return asyncio.run(engine.complete(ASKED, sampling))


def failure(engine, sampling=GREEDY):
    with pytest.raises(EngineError) as caught:
        complete(engine, sampling)
    return caught.value


def test_an_answer_comes_with_its_tokens():
    assert complete(engine(body=answer())) == ("besa", 3, 2, "stop")


def test_an_answer_that_was_cut_off_is_an_error():
    error = failure(engine(body=answer(finish_reason="length")))
    assert (error.kind, error.retryable) == ("cut-off", False)


@pytest.mark.parametrize("content", ["", None])
def test_an_empty_answer_is_an_error(content):
    error = failure(engine(body=answer(content)))
    assert (error.kind, error.retryable) == ("unparsable", False)


def test_only_an_engine_that_draws_may_say_something_else_when_asked_again():
    assert failure(engine(body=answer("")), Sampling(temperature=0.5)).retryable


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (500, {}, "engine", True),
        (503, {}, "engine", True),
        (429, {}, "engine", True),
        (404, {}, "refused", False),
        (422, {"detail": "Unexpected fields"}, "refused", False),
        (400, {"message": "the maximum context length is 64"}, "context", False),
        (200, {"choices": []}, "engine", True),
        (200, {"error": "none"}, "engine", True),
    ],
)
def test_a_refusal_says_whether_a_retry_can_help(status, body, kind, retryable):
    error = failure(engine(status, body))
    assert (error.kind, error.retryable) == (kind, retryable)


@pytest.mark.parametrize("raised", [httpx.ConnectError, httpx.ReadTimeout, httpx.ReadError])
def test_an_engine_that_is_gone_may_come_back(raised):
    def gone(request):
        raise raised("gone", request=request)

    error = failure(OpenAIEngine("http://engine", "m", transport=httpx.MockTransport(gone)))
    assert (error.kind, error.retryable) == ("engine", True)


def test_an_answer_ends_before_the_first_stop_string():
    stopped = Sampling(stop=("[1]", "[0]"))
    assert complete(engine(body=answer("besa [0] ~ [1]", "length")), stopped).text == "besa "


def test_transformers_serve_is_sent_no_field_that_it_refuses():
    body = request_body("transformers-serve", "m", ASKED, DRAWN.model_copy(update={"stop": ("x",)}))
    known = {"model", "messages", "temperature", "top_p", "max_tokens", "chat_template_kwargs"}
    assert body.keys() == known


def test_vllm_is_asked_for_everything_that_is_pinned():
    body = request_body("vllm", "m", ASKED, DRAWN, seed=7)
    assert (body["temperature"], body["top_p"], body["top_k"], body["seed"]) == (0.7, 0.9, 5, 7)
    assert body["skip_special_tokens"] is False


def test_a_seed_is_sent_only_where_one_was_given():
    assert "seed" not in request_body("vllm", "m", ASKED, DRAWN)


def test_a_foreign_endpoint_takes_no_top_k():
    with pytest.raises(InputError, match="no top_k"):
        complete(engine(body=answer()), DRAWN)


def test_an_engine_started_for_one_sampling_answers_with_no_other():
    fixed = engine(body=answer(), kind="transformers-serve", fixed=DRAWN)
    assert complete(fixed, DRAWN.model_copy(update={"max_tokens": 7})).text == "besa"
    with pytest.raises(InputError, match="start another one"):
        complete(fixed, Sampling())


def test_an_engine_outlives_an_event_loop():
    same = engine(body=answer())
    assert [complete(same).text, complete(same).text] == ["besa", "besa"]


def test_no_more_requests_are_under_way_than_the_engine_may_have():
    under_way, most = 0, 0

    async def slow(request):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return httpx.Response(200, json=answer(json.loads(request.content)["model"]))

    async def ask_ten():
        engine = OpenAIEngine(
            "http://engine", "m", concurrency=3, transport=httpx.MockTransport(slow)
        )
        return await asyncio.gather(*(engine.complete(ASKED, Sampling()) for _ in range(10)))

    assert {said.text for said in asyncio.run(ask_ten())} == {"m"}
    assert most == 3
