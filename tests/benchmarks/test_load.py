"""The load client against a real WebSocket server that says what a test has it say."""

import asyncio
import json
import os
from itertools import pairwise

import pytest
from websockets.asyncio.server import serve

from agentworld.errors import SimulatorError
from benchmarks.door import Door
from benchmarks.load import Used, Window, load

SHOWN = json.dumps({"type": "observation", "data": {"observation": {}, "done": False}})
DONE = json.dumps({"type": "observation", "data": {"observation": {}, "done": True}})
BROKEN = json.dumps({"type": "error", "data": {"message": "it broke", "code": "EXECUTION_ERROR"}})


def measured(answer, episodes=3):
    """A short round against `answer`, and the kinds of frames that each connection sent."""
    heard = []

    async def talk(connection):
        heard.append(kinds := [])
        async for frame in connection:
            kinds.append(json.loads(frame)["type"])
            if kinds[-1] == "close":
                return
            await connection.send(answer(kinds[-1], len(kinds)))

    async def work():
        async with serve(talk, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            door = Door(f"ws://127.0.0.1:{port}/ws?run=r", os.getpid())
            return await load(door, episodes, 0.05, 0.1)

    return asyncio.run(work()), heard


def test_every_episode_is_reset_stepped_and_closed():
    taken, heard = measured(lambda kind, number: SHOWN)
    assert len(heard) == taken.episodes == 3
    for kinds in heard:
        assert kinds[0] == "reset"
        assert set(kinds[1:-1]) == {"step"}
        assert kinds[-1] == "close"


def test_only_the_steps_of_the_time_that_counts_are_counted():
    taken, heard = measured(lambda kind, number: SHOWN)
    assert 0 < taken.steps < sum(kinds.count("step") for kinds in heard)
    assert taken.steps_per_second == pytest.approx(taken.steps / 0.1)


def test_an_episode_that_is_done_is_reset_and_the_reset_is_no_step():
    taken, [kinds] = measured(lambda kind, _: DONE if kind == "step" else SHOWN, episodes=1)
    assert kinds.count("reset") >= kinds.count("step") > taken.steps > 0
    assert ("step", "step") not in pairwise(kinds)


def test_an_answer_that_is_no_observation_ends_the_round():
    with pytest.raises(SimulatorError, match=r'answered \{"type": "error".*it broke'):
        measured(lambda kind, number: BROKEN if number == 5 else SHOWN)


def test_a_refused_connection_ends_the_round():
    async def refuse(connection, _request):
        return connection.respond(503, "full")

    async def work():
        async with serve(lambda _: None, "127.0.0.1", 0, process_request=refuse) as server:
            port = server.sockets[0].getsockname()[1]
            await load(Door(f"ws://127.0.0.1:{port}", os.getpid()), 1, 0.0, 0.1)

    with pytest.raises(SimulatorError, match="refused the connection.*503"):
        asyncio.run(work())


def test_a_server_that_answers_nothing_in_time_is_no_measurement():
    with pytest.raises(SimulatorError, match="no step was answered"):
        Window(begin=0.0, seconds=1.0).round(1, Used(0.0, 0.0))


def test_a_round_says_what_a_step_costs_the_server_and_how_busy_the_client_is():
    window = Window(begin=10.0, seconds=2.0)
    for number in range(4):
        window.note(10.0, 10.25 + number / 4)
    taken = window.round(1, Used(server=0.001, client=0.5))
    assert (taken.steps_per_second, taken.server_us, taken.client_share) == (2.0, 250.0, 0.25)
    assert (taken.p50_ms, taken.p99_ms) == (500.0, 1000.0)


def test_a_window_keeps_the_latencies_of_its_own_time_only():
    window = Window(begin=10.0, seconds=2.0)
    goes_on = [window.note(answered - 0.5, answered) for answered in (9.9, 10.0, 11.9, 12.0)]
    assert goes_on == [True, True, True, False]
    assert window.latencies.tolist() == pytest.approx([0.5, 0.5])
