"""Logs, errors and lists of processes contain no credential."""

import asyncio
import logging
import os
import subprocess
import sys
import traceback
from pathlib import Path

import httpx
import pytest
import websockets.sync.client
from websockets.exceptions import InvalidStatus

import make.access
import make.service
from agentworld.access.run_token import RunTokens
from agentworld.client.simulator import SimulatorClient
from agentworld.errors import InputError, SimulatorError
from agentworld.pinning.manifest import pin_endpoint
from agentworld.recipes.serve import EngineRecipe, SimulateRecipe
from agentworld.records.episode import EpisodeOpening, new_name
from agentworld.records.run import OpenedRun
from agentworld.records.simulator import Endpoint
from agentworld.serving.local import ListenOptions, serve_simulator
from agentworld.storage.stores import Stores
from fakes import api_server, endpoint
from make import records

GOOD = make.access.key("acme-agent")
BAD = [
    make.access.key("nobody-agent"),
    RunTokens(b"another secret").token(new_name(), "acme"),
    api_server.token("team-a/trainer", "c2VjcmV0LXNpZ25hdHVyZQ"),
    "hunter2" * 5,
]


def text_of(error):
    return "".join([str(error), repr(error), *traceback.format_exception(error)])


async def run_session(url):
    """Uses a valid key, its run's token and invalid keys; returns the run's id and the errors."""
    errors = []
    client = SimulatorClient(url, credential=GOOD)
    run = await client.open_run(make.service.OPENING)
    episode = await client.begin(EpisodeOpening(run=run.id))
    await client.step(episode.episode, "ls")
    await client.close()
    tools = f"{url}/episodes/{episode.episode}/mcp"
    assert [mcp_status(tools, c) for c in (client.run_token, *BAD)] == [200, *[401] * len(BAD)]
    for credential in BAD:
        client = SimulatorClient(url, credential=credential)
        try:
            await client.resume_run(run.id)
        except SimulatorError as error:
            errors.append((error.kind, text_of(error)))
        await client.close()
    return run.id, errors


def mcp_status(address, credential):
    """The status of a request that lists an episode's tools."""
    accept = {"accept": "application/json, text/event-stream"}
    headers = {"authorization": f"Bearer {credential}", **accept}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    return httpx.post(address, json=body, headers=headers, trust_env=False).status_code


def socket_status(url, credential):
    """The status of a handshake; the client's own log of its requests is ignored."""
    logger = logging.Logger("silent", logging.CRITICAL)
    address = url.replace("http://", f"ws://run:{credential}@")
    try:
        with websockets.sync.client.connect(f"{address}/ws", logger=logger):
            return 101
    except InvalidStatus as error:
        return error.response.status_code


@pytest.mark.waits
def test_no_credential_gets_into_a_log_or_an_error(serve, tmp_path, caplog):
    service = serve(access=make.access.Checked(tmp_path))
    caplog.set_level(logging.DEBUG)
    with make.service.listening(service.transport.app) as url:
        run, errors = asyncio.run(run_session(url))
        token = make.access.TOKENS.token(run, "acme")
        assert socket_status(url, token) == 101
        assert [socket_status(url, credential) for credential in BAD] == [401] * len(BAD)
    assert [kind for kind, _ in errors] == ["unauthorised"] * len(BAD)
    assert caplog.records
    output = caplog.text + repr([vars(record) for record in caplog.records])
    output += "".join(text for _, text in errors)
    for secret in (GOOD, token, *BAD):
        assert secret[-20:] not in output


def test_str_and_repr_of_client_and_opened_run_omit_the_token(serve, tmp_path):
    service = serve(access=make.access.Checked(tmp_path))

    async def work():
        client = service.client(credential=GOOD)
        run = await client.open_run(make.service.OPENING)
        await client.close()
        return client, OpenedRun(run=run, token=client.run_token)

    client, opened_run = asyncio.run(work())
    assert opened_run.token == make.access.TOKENS.token(opened_run.run.id, "acme")
    assert opened_run.token in opened_run.model_dump_json()
    assert opened_run.token not in f"{client} {opened_run} {opened_run!r}"


@pytest.mark.parametrize(
    "credential", ["a\nb" * 9, "a b" * 9, "schlüssel" * 3, "x\r\nhost: y", "a\0b"]
)
def test_a_credential_invalid_in_a_header_is_refused_and_not_printed(credential):
    with pytest.raises(InputError, match="the credential holds") as caught:
        SimulatorClient("http://127.0.0.1:9", credential=credential)
    assert credential not in text_of(caught.value)


@pytest.mark.parametrize(
    "url",
    ["http://run:{}", "http//run:{}@host", "run:{}@host", "ftp://run:{}@host", "http://run:{}/@h"],
)
def test_the_error_for_an_invalid_address_omits_its_token(url):
    with pytest.raises(InputError, match="address") as caught:
        SimulatorClient(url.format(GOOD))
    assert GOOD not in text_of(caught.value)


def command_lines():
    """The command lines of processes, which every user of this machine can read."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes())
        except OSError:  # the process has ended
            continue
    return b"\n".join(lines)


@pytest.mark.waits
def test_no_credential_is_in_the_list_of_processes_nor_in_the_services_log(tmp_path):
    with endpoint.running(lambda _request: "[0] ~") as server:
        recipe = SimulateRecipe(domains={"shell": "You simulate a shell."})
        manifest = pin_endpoint(Endpoint(url=server.url, model="m"), recipe)
        manifest.write(tmp_path / "manifest.json")
        options = ListenOptions(str(make.access.access_file(tmp_path)))
        logs, stores = tmp_path / "logs", Stores.of(tmp_path)
        with serve_simulator(
            tmp_path / "manifest.json", tmp_path, EngineRecipe(), stores, logs, options
        ) as local:
            failure, _ = open_run(local.url, BAD[0])
            success, lines = open_run(local.url, GOOD)
    assert failure.returncode == 6
    assert "send an API key, a run's token" in failure.stderr
    assert success.returncode == 0, success.stderr
    assert b"agentworld.serving.main" in lines
    assert b"run open" in lines.replace(b"\0", b" ")
    log = (logs / "simulator.log").read_bytes()
    for secret in (GOOD, BAD[0]):
        assert secret.encode() not in lines + log
    assert GOOD not in failure.stderr + success.stderr + success.stdout


def open_run(url, credential):
    """Runs `agentworld run open`; returns its result, and the command lines visible during it."""
    weights = records.digest("starting")
    arguments = f"run open --name a --weights {weights} --url {url}".split()
    process = subprocess.Popen(
        [sys.executable, "-m", "agentworld_cli.main", *arguments],
        env={**os.environ, "AGENTWORLD_CREDENTIAL": f"{credential}\n"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = b""
    while process.poll() is None:
        lines += command_lines()
    out, error = process.communicate()
    return subprocess.CompletedProcess(arguments, process.returncode, out, error), lines
