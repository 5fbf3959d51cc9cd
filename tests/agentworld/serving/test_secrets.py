"""No credential gets anywhere: no log, no error, no list of processes."""

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


def told_of(error):
    return "".join([str(error), repr(error), *traceback.format_exception(error)])


async def a_session(url):
    """The client's errors and results for a valid key, for its run's token, and for an invalid
    key.
    """
    said = []
    client = SimulatorClient(url, credential=GOOD)
    run = await client.open_run(make.service.OPENING)
    begun = await client.begin(EpisodeOpening(run=run.id))
    await client.step(begun.episode, "ls")
    await client.close()
    tools = f"{url}/episodes/{begun.episode}/mcp"
    assert [over_mcp(tools, each) for each in (client.run_token, *BAD)] == [200, *[401] * len(BAD)]
    for bad in BAD:
        client = SimulatorClient(url, credential=bad)
        try:
            await client.resume_run(run.id)
        except SimulatorError as error:
            said.append((error.kind, told_of(error)))
        await client.close()
    return run.id, client.run_token, said


def over_mcp(address, credential):
    """The status of a request that lists an episode's tools."""
    accept = {"accept": "application/json, text/event-stream"}
    told = {"authorization": f"Bearer {credential}", **accept}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    return httpx.post(address, json=body, headers=told, trust_env=False).status_code


def over_a_socket(url, credential):
    """The status of a handshake; the client's own log of its requests is ignored."""
    silent = logging.Logger("silent", logging.CRITICAL)
    there = url.replace("http://", f"ws://run:{credential}@")
    try:
        with websockets.sync.client.connect(f"{there}/ws", logger=silent):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


@pytest.mark.waits
def test_no_credential_gets_into_a_log_or_an_error(serve, tmp_path, caplog):
    served = serve(access=make.access.Checked(tmp_path))
    caplog.set_level(logging.DEBUG)
    with make.service.listening(served.transport.app) as url:
        run, _, said = asyncio.run(a_session(url))
        token = make.access.TOKENS.token(run, "acme")
        assert over_a_socket(url, token) == 101
        assert [over_a_socket(url, bad) for bad in BAD] == [401] * len(BAD)
    assert [kind for kind, _ in said] == ["unauthorised"] * len(BAD)
    assert caplog.records
    everything = caplog.text + repr([vars(record) for record in caplog.records])
    everything += "".join(text for _, text in said)
    for secret in (GOOD, token, *BAD):
        assert secret[-20:] not in everything


def test_str_and_repr_of_client_and_opened_run_omit_the_token(serve, tmp_path):
    served = serve(access=make.access.Checked(tmp_path))

    async def work():
        client = served.client(credential=GOOD)
        run = await client.open_run(make.service.OPENING)
        await client.close()
        return client, OpenedRun(run=run, token=client.run_token)

    client, opened = asyncio.run(work())
    assert opened.token == make.access.TOKENS.token(opened.run.id, "acme")
    assert opened.token in opened.model_dump_json()
    assert opened.token not in f"{client} {opened} {opened!r}"


@pytest.mark.parametrize(
    "credential", ["a\nb" * 9, "a b" * 9, "schlüssel" * 3, "x\r\nhost: y", "a\0b"]
)
def test_a_credential_invalid_in_a_header_is_refused_and_not_printed(credential):
    with pytest.raises(InputError, match="the credential holds") as refused:
        SimulatorClient("http://127.0.0.1:9", credential=credential)
    assert credential not in told_of(refused.value)


@pytest.mark.parametrize(
    "url",
    ["http://run:{}", "http//run:{}@host", "run:{}@host", "ftp://run:{}@host", "http://run:{}/@h"],
)
def test_the_error_for_an_invalid_address_omits_its_token(url):
    with pytest.raises(InputError, match="address") as refused:
        SimulatorClient(url.format(GOOD))
    assert GOOD not in told_of(refused.value)


def command_lines():
    """The command lines of processes, which every user of this machine can read."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes())
        except OSError:  # it ended meanwhile
            continue
    return b"\n".join(found)


@pytest.mark.waits
def test_no_credential_is_in_the_list_of_processes_nor_in_the_services_log(tmp_path):
    with endpoint.running(lambda _asked: "[0] ~") as there:
        recipe = SimulateRecipe(domains={"shell": "You simulate a shell."})
        pinned = pin_endpoint(Endpoint(url=there.url, model="m"), recipe)
        pinned.write(tmp_path / "manifest.json")
        at = ListenOptions(str(make.access.access_file(tmp_path)))
        logs, stores = tmp_path / "logs", Stores.of(tmp_path)
        with serve_simulator(
            tmp_path / "manifest.json", tmp_path, EngineRecipe(), stores, logs, at
        ) as local:
            refused, _ = commanded(local.url, BAD[0])
            opened, seen = commanded(local.url, GOOD)
    assert refused.returncode == 6
    assert "send an API key, a run's token" in refused.stderr
    assert opened.returncode == 0, opened.stderr
    assert b"agentworld.serving.main" in seen
    assert b"run open" in seen.replace(b"\0", b" ")
    log = (logs / "simulator.log").read_bytes()
    for secret in (GOOD, BAD[0]):
        assert secret.encode() not in seen + log
    assert GOOD not in refused.stderr + opened.stderr + opened.stdout


def commanded(url, credential):
    """The result of `agentworld run open`, and the command lines that were visible meanwhile."""
    weights = records.digest("starting")
    words = f"run open --name a --weights {weights} --url {url}".split()
    process = subprocess.Popen(
        [sys.executable, "-m", "agentworld_cli.main", *words],
        env={**os.environ, "AGENTWORLD_CREDENTIAL": f"{credential}\n"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    seen = b""
    while process.poll() is None:
        seen += command_lines()
    out, error = process.communicate()
    return subprocess.CompletedProcess(words, process.returncode, out, error), seen
