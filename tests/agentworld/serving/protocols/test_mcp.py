"""MCP with the protocol's own client, with and without the handshake."""

import asyncio
import json
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from agentworld.access.checked import CheckedAccess
from agentworld.access.key import key_digest, new_key
from agentworld.access.reloaded import ReloadedAccess
from agentworld.access.run_token import RunTokens
from agentworld.domains.shell.domain import BASH
from agentworld.errors import EngineError
from make import records
from make.service import listening

GUIDE = Path(__file__).parents[4] / "docs/guides/protocols.md"
READ_TOOL = {
    "name": "read_file",
    "description": "Reads lines of a file.",
    "input_schema": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "lines": {"$ref": "#/$defs/span"}},
        "required": ["path"],
        "additionalProperties": False,
        "$defs": {"span": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}},
    },
}

CALL = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": "bash", "arguments": {"command": "echo a"}},
    }
)
LS = {"command": "ls"}
PLAIN = {"accept": "application/json", "content-type": "application/json"}


@pytest.fixture(params=["legacy", "auto"])
def mode(request):
    return request.param


@pytest.fixture
def talk(serve, mode):
    """A function that returns the result of `act` with a client of a new episode."""

    def play(act, service=None, **opening):
        service = service or serve()
        episode = service.reset(**opening)
        with listening(service.transport.app) as url:
            return episode, talk_to(f"{url}/episodes/{episode}/mcp", act, mode)

    return play


def talk_to(url, act, mode="legacy", **headers):
    """The result of `act` with a client at this address."""

    async def converse():
        async with (
            httpx2.AsyncClient(headers=headers, verify=False) as http,  # to load no certificates
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            return await act(client)

    return asyncio.run(converse())


def run_bash(*commands):
    """Calls bash with each of these commands in turn."""

    async def act(client):
        return [await client.call_tool("bash", {"command": command}) for command in commands]

    return act


def get_error(name="bash", arguments=None):
    """Calls a tool and returns the error of its answer."""

    async def act(client):
        with pytest.raises(MCPError) as caught:
            await client.call_tool(name, arguments or LS)
        return caught.value

    return act


def connection_error(url, **headers):
    """The error message of a client that fails before its first call."""
    with pytest.RaisesGroup(MCPError, flatten_subgroups=True) as caught:
        talk_to(url, run_bash("ls"), **headers)
    error = caught.value
    while isinstance(error, ExceptionGroup):
        (error,) = error.exceptions
    return error.message


def text_of(result):
    (content,) = result.content
    assert not result.is_error
    return content.text


@contextmanager
def episode_url(service, episode):
    """The address of an episode while its service listens."""
    with listening(service.transport.app) as url:
        yield f"{url}/episodes/{episode}/mcp"


def test_the_server_names_the_pinned_simulator_and_offers_only_tools(talk):
    async def act(client):
        return client.server_info, client.server_capabilities

    _, (server, capabilities) = talk(act)
    assert (server.name, server.version) == ("agentworld simulator", records.manifest().digest)
    names = {name for name, value in capabilities.model_dump().items() if value is not None}
    assert names == {"tools"}


def test_a_shell_simulator_offers_the_bash_tool(talk):
    _, listing = talk(lambda client: client.list_tools())
    (tool,) = listing.tools
    assert (tool.name, tool.description) == (BASH.name, BASH.description)
    assert tool.input_schema == BASH.input_schema


def test_an_episodes_own_tools_are_listed_with_their_whole_schemas(talk):
    _, listing = talk(lambda client: client.list_tools(), tools=[READ_TOOL])
    (tool,) = listing.tools
    assert (tool.name, tool.input_schema) == ("read_file", READ_TOOL["input_schema"])


def test_a_simulator_of_the_text_domain_has_no_default_tools(serve, talk):
    service = serve(domains=records.pinned_domains("text"))
    _, listing = talk(lambda client: client.list_tools(), service)
    assert listing.tools == []


@pytest.mark.parametrize(("domain", "names"), [("shell", ["bash"]), ("text", [])])
def test_a_simulator_of_two_domains_offers_the_tools_of_the_episodes_domain(
    serve, talk, domain, names
):
    service = serve(domains=records.pinned_domains("shell", "text"))
    _, listing = talk(lambda client: client.list_tools(), service, domain=domain)
    assert [tool.name for tool in listing.tools] == names


def test_a_call_is_a_step_and_its_result_is_the_observation(serve, talk):
    service = serve()
    episode, (first, second) = talk(run_bash("echo a", "echo b"), service)
    assert (text_of(first), text_of(second)) == ("a\n[0] ~", "b\n[0] ~")
    record = service.ledger.episode(episode)
    assert [step.action for step in record.steps] == ["echo a", "echo b"]
    assert second.meta["agentworld"] == {
        "simulator": records.manifest().digest,
        "run": record.run,
        "episode": episode,
        "step": 2,
        "reward": None,
        "done": False,
        "truncated": False,
        "mean_logprob": None,
        "agreement": None,
        "low_confidence": False,
        "exact": True,
    }


def test_the_engine_receives_tools_and_tool_calls_as_json(serve, talk):
    service = serve(lambda messages: "besa", domains=records.pinned_domains("text"))
    call = {"path": "rimo.txt", "lines": [1, 2]}
    _, result = talk(lambda client: client.call_tool("read_file", call), service, tools=[READ_TOOL])
    assert text_of(result) == "besa"
    (request,) = service.engine.requests
    system, action = (message["content"] for message in request.messages)
    assert '\n{"name":"read_file","description":"Reads lines of a file.","inputSchema":{' in system
    assert action == '{"name":"read_file","arguments":{"lines":[1,2],"path":"rimo.txt"}}'


def test_two_concurrent_calls_are_two_steps(serve, talk):
    async def act(client):
        calls = (client.call_tool("bash", {"command": f"echo {word}"}) for word in ("a", "b"))
        return await asyncio.gather(*calls)

    service = serve()
    episode, results = talk(act, service)
    assert [text_of(result) for result in results] == ["a\n[0] ~", "b\n[0] ~"]
    observations = {result.meta["agentworld"]["step"]: text_of(result) for result in results}
    steps = service.ledger.episode(episode).steps
    assert observations == {step.number: step.observation for step in steps}
    assert len(steps) == 2


def test_a_repeated_call_with_a_step_number_is_executed_once(serve, talk):
    async def act(client):
        first, second = [await client.call_tool("bash", LS, meta=step(1)) for _ in range(2)]
        failures = []
        for number in (3, "2"):
            with pytest.raises(MCPError) as caught:
                await client.call_tool("bash", LS, meta=step(number))
            failures.append(caught.value.data["kind"])
        return first, second, failures

    def step(number):
        return {"agentworld": {"step": number}}

    service = serve()
    episode, (first, second, failures) = talk(act, service)
    assert first.content == second.content
    assert first.meta["agentworld"] == second.meta["agentworld"]
    assert failures == ["conflict", "input"]
    assert len(service.ledger.episode(episode).steps) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("zsh", {"command": "ls"}, "no tool 'zsh' in this episode; there is bash"),
        ("bash", {}, "'command' is a required property"),
        ("bash", {"command": 1}, r"$.command: 1 is not of type 'string'"),
        ("bash", {"command": "ls", "cwd": "/"}, "'cwd' was unexpected"),
    ],
    ids=["unknown", "missing", "wrong", "more"],
)
def test_an_invalid_call_is_an_input_error_and_records_no_step(
    serve, talk, name, arguments, problem
):
    async def act(client):
        with pytest.raises(MCPError) as caught:
            await client.call_tool(name, arguments)
        return caught.value

    service = serve()
    episode, error = talk(act, service)
    assert problem in error.message
    assert (error.data["kind"], error.data["retryable"]) == ("input", False)
    assert service.ledger.episode(episode).steps == ()
    assert service.engine.requests == []


def test_a_call_in_a_finished_episode_is_a_conflict_error(talk):
    async def act(client):
        return await run_bash("ls")(client), await get_error()(client)

    _, ((last,), error) = talk(act, turn_limit=1)
    metadata = last.meta["agentworld"]
    assert (metadata["done"], metadata["truncated"]) == (True, True)
    assert error.data["kind"] == "conflict"
    assert "is over (limit)" in error.message


def test_an_engine_failure_is_an_error_and_the_call_can_be_retried(serve, talk):
    async def act(client):
        return await get_error()(client), await run_bash("ls")(client)

    answers = iter([EngineError("gone", retry_after_seconds=2), "[0] ~"])
    _, (error, (result,)) = talk(act, serve(lambda messages: next(answers)))
    fields = error.data["kind"], error.data["retryable"], error.data["retry_after_seconds"]
    assert fields == ("engine", True, 2.0)
    assert result.meta["agentworld"]["step"] == 1


def test_an_internal_error_does_not_reveal_its_message(serve, talk):
    def fail(_messages):
        raise RuntimeError("a secret")

    _, error = talk(get_error(), serve(fail))
    assert (error.data["kind"], error.message) == ("internal", "internal error; see the log")


def test_invalid_unicode_is_replaced_and_marked_but_recorded_unchanged(serve, talk):
    service = serve(lambda messages: "a\udc80b")
    episode, (result,) = talk(run_bash("ls"), service)
    assert (text_of(result), result.meta["agentworld"]["exact"]) == ("a\ufffdb", False)
    assert service.ledger.episode(episode).steps[0].observation == "a\udc80b"


def test_a_call_with_invalid_unicode_is_a_parse_error(serve):
    service = serve()
    episode = service.reset()
    body = CALL.replace("echo a", "echo \\ud800")
    with episode_url(service, episode) as url:
        answer = httpx.post(url, content=body, headers=PLAIN)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)
    assert service.ledger.episode(episode).steps == ()


@pytest.mark.waits
def test_any_replica_answers_any_request_without_a_session_id(serve):
    replica, other_replica = serve(), serve()
    episode = replica.reset()
    answers = []
    with episode_url(replica, episode) as first, episode_url(other_replica, episode) as second:
        for url in (first, second, first):
            answers.append(httpx.post(url, content=CALL, headers=PLAIN))
    assert not any("mcp-session-id" in answer.headers for answer in answers)
    results = [answer.json()["result"] for answer in answers]
    assert [result["content"][0]["text"] for result in results] == ["a\n[0] ~"] * 3
    assert [result["_meta"]["agentworld"]["step"] for result in results] == [1, 2, 3]


@pytest.mark.waits
def test_the_guides_program_plays_an_episode(serve):
    service = serve()
    episode = service.reset()
    (section,) = re.findall(r"^## MCP\n(.*?)(?=^## |\Z)", GUIDE.read_text(), re.M | re.S)
    (program,) = re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)
    with episode_url(service, episode) as url:
        command = [sys.executable, "-c", program, url]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stdout.splitlines() == [
        *("['bash']", "1 kolu > rimo.txt", "[0] ~ None False", "2 [0] ~ None False")
    ], result.stderr


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_get_and_delete_are_not_allowed(serve, method):
    service = serve()
    assert service.http(method, f"/episodes/{service.reset()}/mcp").status_code == 405


@pytest.fixture
def tenants(serve, tmp_path):
    """A service with three tenants, and a function from a tenant's name to its key header."""
    keys = {name: new_key() for name in ("own", "other", "auditor")}
    roles = {"own": "agent", "other": "agent", "auditor": "auditor"}
    lines = ["tenants:"]
    for name, key in keys.items():
        entry = f"{{sha256: {key_digest(key)}, roles: [{roles[name]}]}}"
        lines += [f"  {name}:", f"    keys: {{k: {entry}}}"]
    (tmp_path / "access.yaml").write_text("\n".join(lines))
    access = CheckedAccess(
        ReloadedAccess(tmp_path / "access.yaml"), RunTokens(b"a secret of the tests")
    )
    return serve(access=access), lambda name: {"authorization": f"Bearer {keys[name]}"}


def open_episode(service, headers):
    """Opens a run of this caller and an episode in it."""
    opening = {"agent": "a", "starting_weights": records.digest("starting")}
    answer = service.http("POST", "/runs", opening, **headers).json()
    body = {"run": answer["run"]["id"]}
    return answer, service.http("POST", "/episodes", body, **headers).json()["episode"]


@pytest.mark.waits
def test_an_episode_of_another_tenant_looks_nonexistent(tenants):
    service, key = tenants
    _, episode = open_episode(service, key("own"))
    with episode_url(service, episode) as url:
        rival_answer = httpx.post(url, json={}, headers=key("other"))
        unknown_answer = httpx.post(url.replace(episode, "0" * 32), json={}, headers=key("other"))
        message = connection_error(url, **key("other"))
        (result,) = talk_to(url, run_bash("echo a"), **key("own"))
    assert message.startswith(f"there is no episode {episode}; reset to begin one")
    assert (rival_answer.status_code, unknown_answer.status_code) == (404, 404)
    assert rival_answer.text.replace(episode, "0" * 32) == unknown_answer.text
    assert rival_answer.json()["error"]["data"]["kind"] == "not-found"
    assert text_of(result) == "a\n[0] ~"


@pytest.mark.waits
def test_a_run_token_in_the_address_gives_access_only_to_episodes_of_its_run(tenants):
    service, key = tenants
    answer, episode = open_episode(service, key("own"))
    _, other_episode = open_episode(service, key("own"))
    with episode_url(service, episode) as url:
        token_url = url.replace("//", f"//run:{answer['token']}@")
        (result,) = talk_to(token_url, run_bash("echo a"))
        message = connection_error(token_url.replace(episode, other_episode))
        assert httpx.post(url, json={}).status_code == 401
    assert message.startswith(f"there is no episode {other_episode}; reset to begin one")
    assert text_of(result) == "a\n[0] ~"


def test_an_auditor_lists_tools_but_cannot_call_them(tenants):
    service, key = tenants
    _, episode = open_episode(service, key("own"))
    with episode_url(service, episode) as url:
        listing = talk_to(url, lambda client: client.list_tools(), **key("auditor"))
        error = talk_to(url, get_error(), **key("auditor"))
    assert [tool.name for tool in listing.tools] == ["bash"]
    assert error.data["kind"] == "forbidden"
    assert service.ledger.episode(episode).steps == ()
