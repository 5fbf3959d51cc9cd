"""Ports of the loopback for servers that come back to where they were."""

import random
import socket
from contextlib import suppress

from agentworld.engine.process import LOOPBACK

# Below those that the system gives to connections: a server that comes back finds its own free.
_PORTS = range(15_000, 30_000)


def free_ports(num: int) -> list[int]:
    """Ports of the loopback that nobody listens on, and no connection is given."""
    found: list[int] = []
    for port in random.sample(_PORTS, 50 * num):
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, port))
            found.append(port)
        if len(found) == num:
            break
    return found
