"""Requests that OpenAI's protocol refuses, and its client's errors."""

import re

import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentworld.access.checked import CheckedAccess
from agentworld.access.key import key_digest
from agentworld.access.reloaded import ReloadedAccess
from agentworld.access.run_token import RunTokens
from agentworld.errors import EngineError
from make import records
from make.chat import LS, MODEL, assistant, call, chat, named, said, streamed, user

SAMPLING = {"temperature": 0.5, "top_p": 0.9, "top_k": 5, "max_tokens": 64, "stop": ["#"]}
PINNED = {
    "temperature": 0.5,
    "top_p": 0.9,
    "max_tokens": 64,
    "max_completion_tokens": 64,
    "stop": "#",
    "n": 1,
    "tools": [],
    "tool_choice": "none",
    "response_format": {"type": "text"},
    "modalities": ["text"],
    "logprobs": False,
    "frequency_penalty": 0,
    "presence_penalty": 0.0,
    "logit_bias": {},
    "extra_body": {"top_k": 5},
}
TOOL = {"type": "function", "function": {"name": "bash"}}


def test_a_request_may_repeat_the_pinned_settings(serve):
    service = serve(sampling=SAMPLING)
    model = records.manifest(sampling=SAMPLING).digest
    answer = chat(service, service.run(), LS, model=model, **PINNED)
    assert said(answer) == "[0] ~"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 1.0),
        ("top_p", 0.5),
        ("top_k", 7),
        ("max_tokens", 1),
        ("max_completion_tokens", 257),
        ("stop", "#"),
        ("n", 2),
        ("tools", [TOOL]),
        ("tool_choice", "auto"),
        ("response_format", {"type": "json_object"}),
        ("modalities", ["text", "audio"]),
        ("logprobs", True),
        ("top_logprobs", 2),
        ("frequency_penalty", 0.1),
        ("presence_penalty", -0.1),
        ("logit_bias", {"1": 100}),
        ("service_tier", "flex"),
        ("verbosity", "low"),
        ("reasoning_effort", "high"),
        ("repetition_penalty", 1.1),
        ("seed", -1),
        ("metadata", {"episode": 1}),
        ("stream_options", {"exclude_usage": True}),
        ("messages", []),
    ],
)
def test_an_unsupported_setting_or_value_is_refused_by_name(serve, name, value):
    service = serve()
    run = service.run()
    with pytest.raises(openai.BadRequestError) as caught:
        chat(service, run, LS, extra_body={name: value})
    error = caught.value
    assert error.param.split(".")[0] == name
    assert (error.code, error.type) == ("input", "invalid_request_error")
    assert error.response.headers["x-should-retry"] == "false"
    assert service.engine.requests == []


def test_fields_without_effect_are_accepted(serve):
    service = serve()
    fields = {"user": "u", "store": True, "metadata": {"any": "word"}, "service_tier": "auto"}
    fields |= {"safety_identifier": "u", "prompt_cache_key": "k", "seed": None, "stop": None}
    assert said(chat(service, service.run(), LS, **fields)) == "[0] ~"
    parts = [{"type": "text", "text": text} for text in ("echo a", "b")]
    assert said(chat(service, service.run(), [user(parts)])) == "a\nb\n[0] ~"


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([assistant("a"), *LS], "messages.0.role"),
        ([*LS, *LS], "messages.1.role"),
        ([*LS, {"role": "system", "content": "be slow"}], "messages.1.role"),
        ([*LS, assistant("a")], "messages"),
        ([{"role": "system", "content": "be slow"}], "messages"),
        ([{"role": "tool", "content": "a", "tool_call_id": "1"}], "messages.0.role"),
        ([{**LS[0], "name": "me"}], "messages.0.name"),
        ([{"role": "user"}], "messages.0.content"),
        ([user(None)], "messages.0.content"),
        ([user([])], "messages.0.content"),
        ([user([{"type": "image_url", "image_url": {"url": "a"}}])], "messages.0.content"),
        ([user([{"type": "text", "text": 1}])], "messages.0.content"),
    ],
)
def test_invalid_messages_are_refused_with_their_position(serve, messages, param):
    service = serve()
    with pytest.raises(openai.BadRequestError) as caught:
        chat(service, service.run(), messages)
    assert caught.value.param == param


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b"null"])
def test_an_invalid_request_body_is_400(serve, body):
    service = serve()
    answer = service.send("POST", f"/runs/{service.run()}/v1/chat/completions", body)
    assert answer.status_code == 400
    assert answer.json()["error"].keys() == {"message", "type", "param", "code"}
    assert answer.json()["error"]["param"] is None


def test_an_invalid_idempotency_key_is_refused(serve):
    service = serve()
    with pytest.raises(openai.BadRequestError) as caught:
        chat(service, service.run(), LS, extra_headers={"Idempotency-Key": "mine"})
    assert caught.value.param == "idempotency-key"


@pytest.mark.parametrize(
    ("error", "exc_type", "kind", "retry"),
    [
        (EngineError("gone"), openai.InternalServerError, "engine", "true"),
        (EngineError("late", kind="slow"), openai.InternalServerError, "slow", "true"),
        (EngineError("full", kind="capacity"), openai.RateLimitError, "capacity", "true"),
        (
            EngineError("long", kind="context", retryable=False),
            openai.UnprocessableEntityError,
            "context",
            "false",
        ),
        (
            EngineError("cut", kind="cut-off", retryable=False),
            openai.InternalServerError,
            "cut-off",
            "false",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_engine_failure_raises_a_typed_error_with_a_should_retry_header(
    serve, error, exc_type, kind, retry
):
    service = serve(lambda messages: error)
    run = service.run()
    for ask in (chat, streamed):
        with pytest.raises(exc_type) as caught:
            ask(service, run, LS)
        assert caught.value.code == kind
        headers = caught.value.response.headers
        assert (headers["x-should-retry"], "retry-after" in headers) == (retry, retry == "true")


@pytest.fixture
def two_tenants(serve, tmp_path):
    """A service, and a run with its token for each of two tenants; a key is named by its tenant."""
    lines = ["tenants:"]
    for tenant in ("mine", "theirs"):
        key = f"{{sha256: {key_digest(f'awk_{tenant}')}, roles: [agent]}}"
        lines.append(f"  {tenant}: {{keys: {{only: {key}}}}}")
    file = tmp_path / "access.yaml"
    file.write_text("\n".join(lines))
    service = serve(access=CheckedAccess(ReloadedAccess(file), RunTokens(b"a secret of the tests")))
    opening = {"agent": "a", "starting_weights": records.digest("starting")}
    answers = [
        service.http("POST", "/runs", opening, authorization=f"Bearer awk_{tenant}").json()
        for tenant in ("mine", "theirs")
    ]
    return service, [(answer["run"]["id"], answer["token"]) for answer in answers]


def test_a_run_token_is_an_api_key_for_its_run_only(two_tenants):
    service, [(run, token), (other_run, _)] = two_tenants
    answer = chat(service, "", LS, key=token)
    assert answer.agentworld["run"] == run
    with pytest.raises(openai.NotFoundError):
        chat(service, other_run, LS, key=token)


def test_a_request_without_a_credential_is_rejected(two_tenants):
    service, [(run, _), _] = two_tenants
    for ask in (chat, streamed):
        with pytest.raises(openai.AuthenticationError, match="bearer token"):
            ask(service, run, LS)


def test_runs_and_episodes_of_another_tenant_look_nonexistent(two_tenants):
    service, [(own, _), (rival, _)] = two_tenants
    episode = chat(service, rival, LS, key="awk_theirs").agentworld["episode"]
    messages = []
    for run, name in [(rival, episode), ("0" * 32, episode), (own, episode), (own, "0" * 32)]:
        with pytest.raises(openai.NotFoundError) as caught:
            chat(service, run, LS, key="awk_mine", **named(name))
        messages.append(str(caught.value).replace(run, "RUN").replace(name, "EPISODE"))
    assert (messages[0], messages[2]) == (messages[1], messages[3])
    with pytest.raises(openai.NotFoundError):
        call(service, rival, lambda client: client.models.retrieve(MODEL), "awk_mine")


@pytest.mark.parametrize(
    ("method", "path", "exc_type", "status"),
    [
        ("post", "/embeddings", openai.NotFoundError, 404),
        ("post", "/models", openai.APIStatusError, 405),
        ("get", "/chat/completions", openai.APIStatusError, 405),
    ],
)
def test_an_unsupported_openai_route_returns_an_openai_error(serve, method, path, exc_type, status):
    service = serve()
    with pytest.raises(exc_type) as caught:
        call(service, service.run(), lambda client: getattr(client, method)(path, cast_to=object))
    error = caught.value
    assert (error.status_code, error.code, error.param) == (status, "not-found", None)
    assert error.type == "invalid_request_error"
    assert error.response.headers["x-should-retry"] == "false"
    assert ("allow" in error.response.headers) == (status == 405)


def test_an_internal_error_is_returned_as_an_openai_error(serve):
    service = serve(lambda messages: 1 / 0)
    with pytest.raises(openai.InternalServerError) as caught:
        chat(service, service.run(), LS)
    assert (caught.value.code, caught.value.type) == ("internal", "server_error")


@pytest.mark.waits
def test_openapi_declares_every_error_status_of_a_completion(serve):
    paths = serve().http("GET", "/openapi.json").json()["paths"]
    declared = paths["/runs/{run}/v1/chat/completions"]["post"]["responses"]
    statuses = 200, 400, 401, 403, 404, 408, 409, 413, 422, 429, 502, 503, 504
    assert declared.keys() == set(map(str, statuses))
    assert declared["200"]["content"].keys() == {"application/json", "text/event-stream"}
    schema = declared["503"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/ChatFailure"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=5,
)
FIELDS = st.sampled_from([*PINNED, "metadata", "messages", "seed", "stream", "stream_options"])


@pytest.fixture
def service_and_run(serve):
    """A service with a run."""
    service = serve()
    return service, service.run()


@pytest.mark.waits
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(FIELDS | st.text(st.characters()), JSON, max_size=3))
def test_any_request_gets_an_answer_or_an_openai_error(service_and_run, fields):
    service, run = service_and_run
    body = {"model": MODEL, "messages": LS, **fields}
    answer = service.http("POST", f"/runs/{run}/v1/chat/completions", body)
    assert answer.status_code in (200, 400, 404)
    if answer.status_code != 200:
        assert answer.json()["error"]["message"]


def test_openai_steps_and_refusals_are_counted(service_and_run):
    service, run = service_and_run
    chat(service, run, LS)
    for fields in ({"model": "gpt-9"}, {"n": 2}):
        with pytest.raises(openai.APIStatusError):
            chat(service, run, LS, **fields)
    metrics = service.http("GET", "/metrics").text
    labels = f'protocol="openai",simulator="{records.manifest().digest}"'
    assert f"agentworld_steps_total{{{labels}}} 1.0" in metrics
    for kind in ("not-found", "input"):
        assert re.search(f'agentworld_refusals_total{{.*"{kind}".*}} 1.0', metrics)
