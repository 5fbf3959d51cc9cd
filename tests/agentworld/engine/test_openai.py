import asyncio
import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.engine.base import Completion, CompletionRequest
from agentworld.engine.openai import OpenAIEngine, request_body
from agentworld.errors import EngineError, InputError
from agentworld.records.simulator import Sampling

ASKED = [{"role": "user", "content": "ls"}]
NAMES = {"vllm": "chatcmpl-{}", "transformers-serve": "{}", "openai": "any"}
GREEDY = Sampling()
REQUEST = CompletionRequest(ASKED, GREEDY)
DRAWN = Sampling(temperature=0.7, top_p=0.9, top_k=5)


def answer(content="besa", name="any"):
    return {
        "id": name,
        "model": "m",
        "choices": [{"message": {"content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }


def engine(handler=None, *, kind="openai", **settings):
    """An engine whose server responds with the request's name, or as `handler` does."""

    def say(request):
        name = NAMES[kind].format(request.headers["x-request-id"])
        return httpx.Response(200, json=answer(name=name))

    transport = httpx.MockTransport(handler or say)
    return OpenAIEngine("http://engine", "m", kind=kind, transport=transport, **settings)


def complete(engine, sampling=GREEDY, messages=ASKED):
    return asyncio.run(engine.complete(CompletionRequest(messages, sampling)))


def body_sent(messages=ASKED, **settings):
    sent = []

    def keep(request):
        sent.append(json.loads(request.content))
        return httpx.Response(503)

    with pytest.raises(EngineError):
        complete(engine(keep, **settings), messages=messages)
    return sent[0]


@pytest.mark.parametrize("kind", NAMES)
def test_an_answer_contains_its_token_counts(kind):
    assert complete(engine(kind=kind)) == Completion("besa", 3, 2, "stop")


def test_a_503_response_is_an_error_with_its_retry_after():
    with pytest.raises(EngineError, match="status 503") as caught:
        complete(engine(lambda request: httpx.Response(503, headers={"Retry-After": "7"})))
    assert (caught.value.kind, caught.value.retry_after_seconds) == ("engine", 7)


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (httpx.ConnectError, "engine"),
        (httpx.ReadError, "engine"),
        (httpx.RemoteProtocolError, "engine"),
        (httpx.DecodingError, "engine"),
        (httpx.ConnectTimeout, "slow"),
        (httpx.ReadTimeout, "slow"),
    ],
)
def test_connection_errors_and_timeouts_are_retryable(raised, kind):
    def gone(request):
        raise raised("gone", request=request)

    with pytest.raises(EngineError) as caught:
        complete(engine(gone))
    assert (caught.value.kind, caught.value.retryable) == (kind, True)


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ("ls \udcff.txt", "ls \ufffd.txt"),
        ("half \ud83d", "half \ufffd"),
        ("\ud83d\ude00 \U0001f600 \udc00", "\U0001f600 \U0001f600 \ufffd"),
        ("\ufeff\ude00\ud83d", "\ufeff\ufffd\ufffd"),
        ("nul \0", "nul \0"),
    ],
)
def test_a_lone_surrogate_is_sent_as_the_replacement_character(said, sent):
    messages = [{"role": "system", "content": said}, {"role": "user", "content": said}]
    assert [each["content"] for each in body_sent(messages)["messages"]] == [sent, sent]


@given(st.text(st.characters(codec="utf-8")))
def test_valid_unicode_is_sent_unchanged(said):
    body = request_body(
        "openai", "m", CompletionRequest([{"role": "user", "content": said}], GREEDY)
    )
    assert body["messages"][0]["content"] == said


@pytest.mark.parametrize("kind", ["vllm", "openai"])
def test_log_probabilities_are_requested_only_when_enabled(kind):
    assert body_sent(kind=kind, logprobs=True)["logprobs"] is True
    assert "logprobs" not in body_sent(kind=kind)


@pytest.mark.parametrize("logprobs", [False, True])
def test_transformers_serve_is_sent_only_supported_fields(logprobs):
    known = {"model", "messages", "temperature", "top_p", "max_tokens", "chat_template_kwargs"}
    assert body_sent(kind="transformers-serve", logprobs=logprobs).keys() == known


def test_vllm_is_sent_the_pinned_sampling_and_the_seed():
    body = request_body("vllm", "m", CompletionRequest(ASKED, DRAWN, 7))
    assert (body["temperature"], body["top_p"], body["top_k"], body["seed"]) == (0.7, 0.9, 5, 7)
    assert body["skip_special_tokens"] is False


def test_a_request_without_a_seed_sends_no_seed():
    assert "seed" not in request_body("vllm", "m", CompletionRequest(ASKED, DRAWN))


@pytest.mark.parametrize(
    ("sampling", "words"), [(DRAWN, "no top_k"), (Sampling(thinking=True), "be told to think")]
)
def test_sampling_that_an_external_endpoint_does_not_support_is_refused(sampling, words):
    with pytest.raises(InputError, match=words):
        complete(engine(), sampling)


def test_an_api_key_is_sent_as_a_bearer_header_only_when_given():
    heard = []

    def answer(request):
        heard.append(request.headers.get("authorization"))
        return httpx.Response(503)

    for key in ("secret", ""):
        with pytest.raises(EngineError):
            complete(engine(answer, api_key=key))
    assert heard == ["Bearer secret", None]


def test_an_engine_started_with_fixed_sampling_refuses_other_sampling():
    fixed = engine(kind="transformers-serve", fixed=DRAWN)
    assert complete(fixed, DRAWN.model_copy(update={"max_tokens": 7})).text == "besa"
    with pytest.raises(InputError, match="start another one"):
        complete(fixed, Sampling())


def test_an_engine_works_in_a_second_event_loop():
    same = engine()
    assert [complete(same).text, complete(same).text] == ["besa", "besa"]


def test_requests_under_way_are_limited_to_the_concurrency():
    under_way, most = 0, 0

    async def slow(request):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return httpx.Response(200, json=answer(json.loads(request.content)["model"]))

    async def ask_ten():
        asked = engine(slow, concurrency=3)
        return await asyncio.gather(*(asked.complete(REQUEST) for _ in range(10)))

    assert {said.text for said in asyncio.run(ask_ten())} == {"m"}
    assert most == 3


def test_a_canceled_request_frees_its_slot():
    first_asked = asyncio.Event()

    async def answer_the_second(_request):
        if first_asked.is_set():
            return httpx.Response(200, json=answer())
        first_asked.set()
        return await asyncio.Event().wait()

    async def give_up_and_ask():
        asked = engine(answer_the_second, concurrency=1)
        first = asyncio.create_task(asked.complete(REQUEST))
        await first_asked.wait()
        first.cancel()
        return await asked.complete(REQUEST)

    assert asyncio.run(give_up_and_ask()).text == "besa"


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda each: st.lists(each, max_size=2) | st.dictionaries(st.text(max_size=9), each),
    max_leaves=4,
)


def places(value):
    """Everything in a JSON value that can be replaced: what holds it, and its key there."""
    inner = dict(enumerate(value)) if isinstance(value, list) else value
    if not isinstance(inner, dict):
        return []
    return [place for key in inner for place in [(value, key), *places(inner[key])]]


@st.composite
def nearly_answers(draw):
    body = answer(draw(st.text()))
    body["choices"][0]["logprobs"] = {"content": [{"logprob": draw(st.floats())}]}
    for _ in range(draw(st.integers(0, 2))):
        holder, key = draw(st.sampled_from(places(body)))
        holder[key] = draw(junk)
    return json.dumps(body).encode()


bodies = st.one_of(
    nearly_answers(),
    st.builds(lambda body, end: body[:end], nearly_answers(), st.integers()),
    st.binary(),
)
statuses = st.one_of(st.just(200), st.just(200), st.integers(100, 599))
headers = st.dictionaries(
    st.sampled_from(["content-type", "content-encoding", "retry-after", "set-cookie", "location"]),
    st.text(st.characters(codec="ascii")) | st.sampled_from(["gzip", "deflate", "a; charset=hex"]),
)


def only_text(status, body):
    """The body's text by another parser, if there is exactly one."""
    try:
        (only,) = json.loads(body)["choices"]
        whole = (status, only["finish_reason"]) == (200, "stop")
        return only["message"]["content"] if whole else None
    except (ValueError, TypeError, LookupError):
        return None


@pytest.mark.waits
@given(statuses, headers, bodies)
def test_any_response_gives_a_complete_answer_or_an_engine_error(status, headers, body):
    def served(_request):
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(body))

    try:
        said = complete(engine(served, logprobs=True))
    except EngineError:
        return
    assert said.text
    assert said.text == only_text(status, body)
    assert said.mean_logprob is None or abs(said.mean_logprob) < float("inf")
