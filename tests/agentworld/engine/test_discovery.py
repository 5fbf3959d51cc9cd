"""The addresses behind a name."""

import asyncio
import socket

import pytest

from agentworld.engine.discovery import by_name


def test_a_name_is_resolved_by_the_real_resolver():
    assert asyncio.run(by_name("localhost", 8000)()) == {"http://127.0.0.1:8000"}


def resolve(answer):
    """The addresses of a name, with this response of the event loop's resolver."""

    class Loop(asyncio.SelectorEventLoop):
        async def getaddrinfo(self, *_arguments, **_options):
            if isinstance(answer, OSError):
                raise answer
            return [(family, socket.SOCK_STREAM, 6, "", address) for family, *address in answer]

    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(by_name("engine", 8000)())


def test_an_unknown_name_has_no_addresses():
    assert resolve(socket.gaierror(socket.EAI_NONAME, "not known")) == set()


def test_a_temporary_resolver_failure_is_raised():
    with pytest.raises(socket.gaierror):
        resolve(socket.gaierror(socket.EAI_AGAIN, "try again"))


def test_a_replica_with_an_ipv4_and_an_ipv6_address_is_counted_once():
    ipv4, ipv6 = (socket.AF_INET, "10.0.0.1", 8000), (socket.AF_INET6, "fd00::1", 8000, 0, 0)
    assert resolve([ipv6, ipv4]) == {"http://10.0.0.1:8000"}
    assert resolve([ipv6]) == {"http://[fd00::1]:8000"}
