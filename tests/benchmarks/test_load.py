"""The load client's requests, and the responses that it counts."""

import asyncio
import json
import os

import pytest
from websockets.asyncio.server import serve

from agentworld.errors import SimulatorError
from benchmarks.load import Used, Window, play
from benchmarks.players import playing
from benchmarks.servers import Target

OBSERVATION = {"type": "observation", "data": {"observation": {}, "done": False}}
DONE = {"type": "observation", "data": {"observation": {}, "done": True}}
BROKEN = {"type": "error", "data": {"message": "it broke", "code": "EXECUTION_ERROR"}}


def frame_kinds(answers):
    """The kinds of frames in an episode of three steps, with these responses."""
    kinds = []

    async def respond(connection):
        async for frame in connection:
            kinds.append(json.loads(frame)["type"])
            if kinds[-1] == "close":
                return
            await connection.send(json.dumps(answers[kinds[-1]]))

    async def run():
        async with serve(respond, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            target, remaining = (
                Target(f"ws://127.0.0.1:{port}/runs/r/ws", os.getpid()),
                [True, True],
            )
            async with playing(target, 1) as [player]:
                await play(player, lambda *_: bool(remaining) and remaining.pop())

    asyncio.run(run())
    return kinds


def test_a_done_episode_is_reset_and_a_reset_is_no_step():
    assert frame_kinds({"reset": OBSERVATION, "step": OBSERVATION}) == [
        "reset",
        *["step"] * 3,
        "close",
    ]
    assert frame_kinds({"reset": OBSERVATION, "step": DONE}) == [*["reset", "step"] * 3, "close"]


def test_an_answer_without_an_observation_raises_an_error():
    with pytest.raises(SimulatorError, match=r'answered \{"type": "error".*it broke'):
        frame_kinds({"reset": OBSERVATION, "step": BROKEN})


def test_only_steps_that_are_answered_in_the_window_count():
    window = Window(begin=10.0, seconds=2.0)
    times = [(9.0, 9.9), (9.9, 10.0), (10.0, 10.25), (10.5, 11.0), (11.0, 11.75), (11.0, 12.0)]
    assert [window.note(*time) for time in times] == [True] * 5 + [False]
    result = window.round(1, Used(server=0.001, client=0.5))
    assert (result.steps, result.steps_per_second) == (4, 2.0)
    assert (result.server_us, result.client_share) == (250.0, 0.25)
    assert (result.p50_ms, result.p99_ms) == pytest.approx((250.0, 750.0))
