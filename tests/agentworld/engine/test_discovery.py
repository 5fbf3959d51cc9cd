"""The addresses behind a name."""

import asyncio
import socket

import pytest

from agentworld.engine.discovery import by_name


def test_a_name_is_told_by_the_real_resolver():
    assert asyncio.run(by_name("localhost", 8000)()) == {"http://127.0.0.1:8000"}


def resolved(answer):
    """The addresses of a name, with this response of the event loop's resolver."""

    class Loop(asyncio.SelectorEventLoop):
        async def getaddrinfo(self, *_asked, **_how):
            if isinstance(answer, OSError):
                raise answer
            return [(family, socket.SOCK_STREAM, 6, "", told) for family, *told in answer]

    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(by_name("engine", 8000)())


def test_a_name_without_an_address_is_an_engine_that_is_not_there():
    assert resolved(socket.gaierror(socket.EAI_NONAME, "not known")) == set()


def test_a_name_server_that_is_gone_says_nothing_of_the_engine():
    with pytest.raises(socket.gaierror):
        resolved(socket.gaierror(socket.EAI_AGAIN, "try again"))


def test_a_replica_with_an_address_of_each_family_is_one():
    old, new = (socket.AF_INET, "10.0.0.1", 8000), (socket.AF_INET6, "fd00::1", 8000, 0, 0)
    assert resolved([new, old]) == {"http://10.0.0.1:8000"}
    assert resolved([new]) == {"http://[fd00::1]:8000"}
