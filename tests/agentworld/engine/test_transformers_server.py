"""The launcher of transformers' own engine; its responses are tested in `test_server`."""

import asyncio

import pytest

pytestmark = pytest.mark.compute


class Server:
    """Serves until it is stopped."""

    should_exit = False

    async def serve(self):
        while not self.should_exit:
            await asyncio.sleep(0)


class Batching:
    """Batching that is alive for this number of looks."""

    def __init__(self, looks):
        self.looks = looks

    def is_cb_alive(self):
        self.looks -= 1
        return self.looks >= 0


def test_a_server_whose_batching_ended_stops_with_a_failure():
    from agentworld.engine.transformers_server import _serve

    server = Server()
    assert asyncio.run(_serve(server, Batching(3))) is False
    assert server.should_exit


def test_a_server_asked_to_exit_ends_successfully():
    from agentworld.engine.transformers_server import _serve

    server = Server()
    server.should_exit = True
    assert asyncio.run(_serve(server, Batching(100))) is True
