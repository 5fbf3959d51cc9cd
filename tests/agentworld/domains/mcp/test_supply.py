"""Servers from one episode to the next: reset in place, or started ahead."""

import asyncio
from functools import partial

import pytest

from agentworld.domains.base import Call
from agentworld.domains.mcp import supply
from agentworld.domains.mcp.connection import connect_process
from agentworld.domains.mcp.reset import access_by_calls
from agentworld.errors import EnvironmentBroken
from make import records
from make.mcp_servers import Started, counter, environment

pytestmark = pytest.mark.waits

TASK = records.task(domain="mcp", instruction="")
ADD, SHOW, CLEAR = '{"name":"add","arguments":{}}', Call("show", {}), Call("clear", {})
RESET = access_by_calls([SHOW], [CLEAR])


def episodes(number, words, access=None, started=None, actions=(ADD, ADD)):
    """The observations of each episode's actions."""
    started = Started() if started is None else started

    async def play():
        played = environment({"counter": words}, started, access)
        try:
            return [await episode(played, actions) for _ in range(number)]
        finally:
            await played.aclose()

    shown = asyncio.run(play())
    assert started.num_running == 0
    return shown


async def episode(played, actions=(ADD, ADD)):
    start = await played.reset(TASK)
    assert start.text in ("0", "")
    return [(await played.step(action)).text for action in actions]


def test_a_server_with_a_reset_is_one_process_from_the_second_episode_on():
    started = Started()
    assert episodes(5, counter(), RESET, started) == [["1", "2"]] * 5
    assert len(started) == 2


def test_a_server_without_a_reset_has_a_process_per_episode_and_one_spare():
    started = Started()
    assert episodes(4, counter(), access_by_calls([SHOW], None), started) == [["1", "2"]] * 4
    assert len(started) == 5


def test_a_single_episode_starts_no_spare_process():
    started = Started()
    assert episodes(1, counter(), None, started) == [["1", "2"]]
    assert len(started) == 1


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
    started = Started()

    async def play():
        played = environment({"counter": counter(flaw)}, started, access)
        try:
            shown = []
            for _ in range(4):
                start = await played.reset(TASK)
                shown.append((start.text, (await played.step(ADD)).text))
            return shown
        finally:
            await played.aclose()

    shown = asyncio.run(play())
    assert len(set(shown)) == 1
    assert len(started) == 6  # one was checked, and one still waited
    (record,) = caplog.records
    assert f"gets a new process for each episode: {problem}" in record.getMessage()


def test_a_reset_that_stops_working_is_detected_before_the_next_episode(caplog):
    started = Started()
    # It was cleared eight times when it was checked, and twice before an episode.
    assert episodes(7, counter("wears-out:10"), RESET, started) == [["1", "2"]] * 7
    assert len(started) == 2 + 3 + 1
    assert "its state after the reset is not that" in caplog.text


def test_a_process_has_a_limited_number_of_episodes(monkeypatch):
    monkeypatch.setattr(supply, "_MOST_EPISODES", 2)
    started = Started()
    assert episodes(6, counter(), RESET, started) == [["1", "2"]] * 6
    assert len(started) == 3


def test_a_spare_process_that_has_ended_is_not_used():
    started = Started()

    async def play():
        connect = partial(connect_process, "counter", partial(started.start, counter()), 60)
        servers = supply.ProcessSupply("counter", connect)
        try:
            for _ in range(2):
                connection = await servers.next_server()
            await servers._spare
            started[-1].process.kill()
            started[-1].process.wait()
            await connection.call("add", {})
            connection = await servers.next_server()
            return await connection.call("add", {})
        finally:
            await servers.close()

    assert asyncio.run(play()) == "1"
    assert len(started) == 5
    assert started.num_running == 0


def test_a_broken_server_does_not_end_the_spare_process():
    started = Started()

    async def play():
        played = environment({"counter": counter()}, started)
        try:
            for _ in range(2):
                await episode(played)
            started[1].process.kill()
            with pytest.raises(EnvironmentBroken, match="ended during a call"):
                await played.step(ADD)
            waiting = started[2].process
            assert waiting.poll() is None
            await played.reset(TASK)
            return waiting.poll()
        finally:
            await played.aclose()

    assert asyncio.run(play()) is None
    assert started.num_running == 0


def test_an_environment_can_be_closed_while_a_process_starts():
    started = Started()

    async def play():
        played = environment({"counter": counter()}, started)
        await played.reset(TASK)
        await played.reset(TASK)
        await played.aclose()

    asyncio.run(play())
    assert started.num_running == 0


def test_a_spare_process_that_fails_to_start_breaks_only_one_reset(tmp_path):
    started = Started()
    flag = tmp_path / "broken"
    words = ("/bin/sh", "-c", f'test ! -e {flag} && exec "$@"', "sh", *counter())

    async def play():
        played = environment({"counter": words}, started)
        try:
            await episode(played)
            await played.reset(TASK)
            flag.touch()
            with pytest.raises(EnvironmentBroken, match="did not start"):
                await played.reset(TASK)
            flag.unlink()
            return await episode(played)
        finally:
            await played.aclose()

    assert asyncio.run(play()) == ["1", "2"]
