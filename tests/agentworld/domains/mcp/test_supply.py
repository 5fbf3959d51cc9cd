"""Servers for consecutive episodes: reset in place, or started in advance."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial

import pytest

from agentworld.domains.base import Call
from agentworld.domains.mcp import supply
from agentworld.domains.mcp.connection import connect_process
from agentworld.domains.mcp.reset import access_by_calls
from agentworld.domains.mcp.running import RunningServer
from agentworld.errors import EnvironmentBroken
from make import records
from make.mcp_servers import Started, counter, environment
from waiting import outcome

pytestmark = pytest.mark.waits

TASK = records.task(domain="mcp", instruction="")
ADD, SHOW, CLEAR = '{"name":"add","arguments":{}}', Call("show", {}), Call("clear", {})
RESET = access_by_calls([SHOW], [CLEAR])


def episodes(num_episodes, program, access=None, servers=None, actions=(ADD, ADD)):
    """The observations of each episode's actions."""
    servers = Started() if servers is None else servers

    async def play():
        mcp_environment = environment({"counter": program}, servers, access)
        try:
            return [await episode(mcp_environment, actions) for _ in range(num_episodes)]
        finally:
            await mcp_environment.aclose()

    observations = asyncio.run(play())
    assert servers.num_running == 0
    return observations


async def episode(mcp_environment, actions=(ADD, ADD)):
    start = await mcp_environment.reset(TASK)
    assert start.text in ("0", "")
    return [(await mcp_environment.step(action)).text for action in actions]


def test_a_server_with_a_reset_is_one_process_from_the_second_episode_on():
    servers = Started()
    assert episodes(5, counter(), RESET, servers) == [["1", "2"]] * 5
    assert len(servers) == 2


def test_a_server_without_a_reset_has_a_process_per_episode_and_one_spare():
    servers = Started()
    assert episodes(4, counter(), access_by_calls([SHOW], None), servers) == [["1", "2"]] * 4
    assert len(servers) == 5


def test_a_single_episode_starts_no_spare_process():
    servers = Started()
    assert episodes(1, counter(), None, servers) == [["1", "2"]]
    assert len(servers) == 1


@pytest.mark.parametrize(
    ("flaw", "access", "problem"),
    [
        ("calls", RESET, "after the reset, calls shows"),
        ("switch", RESET, "after the reset, switch shows"),
        ("", access_by_calls([SHOW], []), "its state after the reset is not that of a fresh"),
        ("refuses", RESET, "the reset's call of clear shows 'Error: locked'"),
        ("", access_by_calls([SHOW], [Call("none", {})]), "the reset's call of none shows"),
        ("", access_by_calls([Call("add", {})], [CLEAR]), "it has another state after its state"),
        ("", access_by_calls([], [CLEAR]), "calls change its state, and its declared state"),
        ("idle", access_by_calls([], []), "all made-up calls of its tools failed"),
    ],
)
def test_a_reset_that_fails_its_check_is_not_used(flaw, access, problem, caplog):
    servers = Started()

    async def play():
        mcp_environment = environment({"counter": counter(flaw)}, servers, access)
        try:
            observations = []
            for _ in range(4):
                start = await mcp_environment.reset(TASK)
                observations.append((start.text, (await mcp_environment.step(ADD)).text))
            return observations
        finally:
            await mcp_environment.aclose()

    observations = asyncio.run(play())
    assert len(set(observations)) == 1
    assert len(servers) == 6  # One was checked, and one was still spare.
    (record,) = caplog.records
    assert f"gets a new process for each episode: {problem}" in record.getMessage()


def test_a_reset_that_stops_working_is_detected_before_the_next_episode(caplog):
    servers = Started()
    # The server was cleared eight times in its check, and twice before an episode.
    assert episodes(7, counter("wears-out:10"), RESET, servers) == [["1", "2"]] * 7
    assert len(servers) == 2 + 3 + 1
    assert "its state after the reset is not that" in caplog.text


def test_a_process_has_a_limited_number_of_episodes(monkeypatch):
    monkeypatch.setattr(supply, "_MOST_EPISODES", 2)
    servers = Started()
    assert episodes(6, counter(), RESET, servers) == [["1", "2"]] * 6
    assert len(servers) == 3


def test_a_spare_process_that_has_ended_is_not_used():
    servers = Started()

    async def play():
        connect = partial(connect_process, "counter", partial(servers.start, counter()), 60)
        supplier = supply.ProcessSupply("counter", connect)
        try:
            for _ in range(2):
                connection = await supplier.next_server()
            await supplier._spare
            servers[-1].process.kill()
            servers[-1].process.wait()
            await connection.call("add", {})
            connection = await supplier.next_server()
            return await connection.call("add", {})
        finally:
            await supplier.close()

    assert asyncio.run(play()) == "1"
    assert len(servers) == 5
    assert servers.num_running == 0


def test_a_broken_server_does_not_end_the_spare_process():
    servers = Started()

    async def play():
        mcp_environment = environment({"counter": counter()}, servers)
        try:
            for _ in range(2):
                await episode(mcp_environment)
            servers[1].process.kill()
            with pytest.raises(EnvironmentBroken, match="ended during a call"):
                await mcp_environment.step(ADD)
            spare_process = servers[2].process
            assert spare_process.poll() is None
            await mcp_environment.reset(TASK)
            return spare_process.poll()
        finally:
            await mcp_environment.aclose()

    assert asyncio.run(play()) is None
    assert servers.num_running == 0


def test_an_environment_can_be_closed_while_a_process_starts():
    servers = Started()

    async def play():
        mcp_environment = environment({"counter": counter()}, servers)
        await mcp_environment.reset(TASK)
        await mcp_environment.reset(TASK)
        await mcp_environment.aclose()

    asyncio.run(play())
    assert servers.num_running == 0


def test_a_start_that_is_cancelled_just_after_the_connection_ends_the_connection():
    events = []

    async def play():
        @asynccontextmanager
        async def connect():
            asyncio.get_running_loop().call_soon(starting.cancel)  # before `start` continues
            try:
                yield
            finally:
                events.append("closed")

        starting = asyncio.create_task(RunningServer.start(connect))
        await asyncio.wait([starting])
        return starting.cancelled()

    assert outcome(lambda: asyncio.run(play())) is True
    assert events == ["closed"]


def test_a_spare_process_that_fails_to_start_breaks_only_one_reset(tmp_path):
    servers = Started()
    flag = tmp_path / "broken"
    program = ("/bin/sh", "-c", f'test ! -e {flag} && exec "$@"', "sh", *counter())

    async def play():
        mcp_environment = environment({"counter": program}, servers)
        try:
            await episode(mcp_environment)
            await mcp_environment.reset(TASK)
            flag.touch()
            with pytest.raises(EnvironmentBroken, match="did not start"):
                await mcp_environment.reset(TASK)
            flag.unlink()
            return await episode(mcp_environment)
        finally:
            await mcp_environment.aclose()

    assert asyncio.run(play()) == ["1", "2"]
