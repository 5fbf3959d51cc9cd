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

MESSAGES = [{"role": "user", "content": "ls"}]
RESPONSE_IDS = {"vllm": "chatcmpl-{}", "transformers-serve": "{}", "openai": "any"}
GREEDY = Sampling()
REQUEST = CompletionRequest(MESSAGES, GREEDY)
RANDOM = Sampling(temperature=0.7, top_p=0.9, top_k=5)


def answer(content="besa", response_id="any"):
    return {
        "id": response_id,
        "model": "m",
        "choices": [{"message": {"content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }


def engine(handler=None, *, kind="openai", **settings):
    """An engine whose server responds with the request's name, or as `handler` does."""

    def respond(request):
        response_id = RESPONSE_IDS[kind].format(request.headers["x-request-id"])
        return httpx.Response(200, json=answer(response_id=response_id))

    transport = httpx.MockTransport(handler or respond)
    return OpenAIEngine("http://engine", "m", kind=kind, transport=transport, **settings)


def complete(engine, sampling=GREEDY, messages=MESSAGES):
    return asyncio.run(engine.complete(CompletionRequest(messages, sampling)))


def sent_body(messages=MESSAGES, **settings):
    bodies = []

    def record(request):
        bodies.append(json.loads(request.content))
        return httpx.Response(503)

    with pytest.raises(EngineError):
        complete(engine(record, **settings), messages=messages)
    return bodies[0]


@pytest.mark.parametrize("kind", RESPONSE_IDS)
def test_an_answer_contains_its_token_counts(kind):
    assert complete(engine(kind=kind)) == Completion("besa", 3, 2, "stop")


def test_a_503_response_is_an_error_with_its_retry_after():
    with pytest.raises(EngineError, match="status 503") as error:
        complete(engine(lambda request: httpx.Response(503, headers={"Retry-After": "7"})))
    assert (error.value.kind, error.value.retry_after_seconds) == ("engine", 7)


@pytest.mark.parametrize(
    ("error_class", "kind"),
    [
        (httpx.ConnectError, "engine"),
        (httpx.ReadError, "engine"),
        (httpx.RemoteProtocolError, "engine"),
        (httpx.DecodingError, "engine"),
        (httpx.ConnectTimeout, "slow"),
        (httpx.ReadTimeout, "slow"),
    ],
)
def test_connection_errors_and_timeouts_are_retryable(error_class, kind):
    def fail(request):
        raise error_class("gone", request=request)

    with pytest.raises(EngineError) as error:
        complete(engine(fail))
    assert (error.value.kind, error.value.retryable) == (kind, True)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("ls \udcff.txt", "ls \ufffd.txt"),
        ("half \ud83d", "half \ufffd"),
        ("\ud83d\ude00 \U0001f600 \udc00", "\U0001f600 \U0001f600 \ufffd"),
        ("\ufeff\ude00\ud83d", "\ufeff\ufffd\ufffd"),
        ("nul \0", "nul \0"),
    ],
)
def test_a_lone_surrogate_is_sent_as_the_replacement_character(content, text):
    messages = [{"role": "system", "content": content}, {"role": "user", "content": content}]
    assert [message["content"] for message in sent_body(messages)["messages"]] == [text, text]


@given(st.text(st.characters(codec="utf-8")))
def test_valid_unicode_is_sent_unchanged(said):
    body = request_body(
        "openai", "m", CompletionRequest([{"role": "user", "content": said}], GREEDY)
    )
    assert body["messages"][0]["content"] == said


@pytest.mark.parametrize("kind", ["vllm", "openai"])
def test_log_probabilities_are_requested_only_when_enabled(kind):
    assert sent_body(kind=kind, logprobs=True)["logprobs"] is True
    assert "logprobs" not in sent_body(kind=kind)


@pytest.mark.parametrize("logprobs", [False, True])
def test_transformers_serve_is_sent_only_supported_fields(logprobs):
    fields = {"model", "messages", "temperature", "top_p", "max_tokens", "chat_template_kwargs"}
    assert sent_body(kind="transformers-serve", logprobs=logprobs).keys() == fields


def test_vllm_is_sent_the_pinned_sampling_and_the_seed():
    body = request_body("vllm", "m", CompletionRequest(MESSAGES, RANDOM, 7))
    assert (body["temperature"], body["top_p"], body["top_k"], body["seed"]) == (0.7, 0.9, 5, 7)
    assert body["skip_special_tokens"] is False


def test_a_request_without_a_seed_sends_no_seed():
    assert "seed" not in request_body("vllm", "m", CompletionRequest(MESSAGES, RANDOM))


@pytest.mark.parametrize(
    ("sampling", "words"), [(RANDOM, "no top_k"), (Sampling(thinking=True), "be told to think")]
)
def test_sampling_that_an_external_endpoint_does_not_support_is_refused(sampling, words):
    with pytest.raises(InputError, match=words):
        complete(engine(), sampling)


def test_an_api_key_is_sent_as_a_bearer_header_only_when_given():
    authorizations = []

    def respond(request):
        authorizations.append(request.headers.get("authorization"))
        return httpx.Response(503)

    for key in ("secret", ""):
        with pytest.raises(EngineError):
            complete(engine(respond, api_key=key))
    assert authorizations == ["Bearer secret", None]


def test_an_engine_started_with_fixed_sampling_refuses_other_sampling():
    fixed_engine = engine(kind="transformers-serve", fixed=RANDOM)
    assert complete(fixed_engine, RANDOM.model_copy(update={"max_tokens": 7})).text == "besa"
    with pytest.raises(InputError, match="start another one"):
        complete(fixed_engine, Sampling())


def test_an_engine_works_in_a_second_event_loop():
    shared_engine = engine()
    assert [complete(shared_engine).text, complete(shared_engine).text] == ["besa", "besa"]


def test_requests_under_way_are_limited_to_the_concurrency():
    num_active, max_active = 0, 0

    async def respond_slowly(request):
        nonlocal num_active, max_active
        num_active += 1
        max_active = max(max_active, num_active)
        await asyncio.sleep(0.01)
        num_active -= 1
        return httpx.Response(200, json=answer(json.loads(request.content)["model"]))

    async def ask_ten():
        client = engine(respond_slowly, concurrency=3)
        return await asyncio.gather(*(client.complete(REQUEST) for _ in range(10)))

    assert {completion.text for completion in asyncio.run(ask_ten())} == {"m"}
    assert max_active == 3


def test_a_canceled_request_frees_its_slot():
    first_arrival = asyncio.Event()

    async def answer_the_second(_request):
        if first_arrival.is_set():
            return httpx.Response(200, json=answer())
        first_arrival.set()
        return await asyncio.Event().wait()

    async def give_up_and_ask():
        client = engine(answer_the_second, concurrency=1)
        first_request = asyncio.create_task(client.complete(REQUEST))
        await first_arrival.wait()
        first_request.cancel()
        return await client.complete(REQUEST)

    assert asyncio.run(give_up_and_ask()).text == "besa"


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda values: st.lists(values, max_size=2) | st.dictionaries(st.text(max_size=9), values),
    max_leaves=4,
)


def locations(value):
    """The location of each replaceable part of a JSON value: its container and its key."""
    inner = dict(enumerate(value)) if isinstance(value, list) else value
    if not isinstance(inner, dict):
        return []
    return [location for key in inner for location in [(value, key), *locations(inner[key])]]


@st.composite
def nearly_answers(draw):
    body = answer(draw(st.text()))
    body["choices"][0]["logprobs"] = {"content": [{"logprob": draw(st.floats())}]}
    for _ in range(draw(st.integers(0, 2))):
        container, key = draw(st.sampled_from(locations(body)))
        container[key] = draw(junk)
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
        (choice,) = json.loads(body)["choices"]
        is_complete = (status, choice["finish_reason"]) == (200, "stop")
        return choice["message"]["content"] if is_complete else None
    except (ValueError, TypeError, LookupError):
        return None


@pytest.mark.waits
@given(statuses, headers, bodies)
def test_any_response_gives_a_complete_answer_or_an_engine_error(status, headers, body):
    def respond(_request):
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(body))

    try:
        completion = complete(engine(respond, logprobs=True))
    except EngineError:
        return
    assert completion.text
    assert completion.text == only_text(status, body)
    assert completion.mean_logprob is None or abs(completion.mean_logprob) < float("inf")
