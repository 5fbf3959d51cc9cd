"""A server at an address has one state, so one environment of a machine resets it at a time."""

import hashlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from agentworld.errors import InputError


@contextmanager
def hold_address(name: str, url: str) -> Iterator[None]:
    """Locks an address; raises InputError if another environment has locked it.

    The lock is an abstract socket, which ends with its process and needs no file.
    """
    digest = hashlib.sha256(url.encode()).hexdigest()[:32]
    with socket.socket(socket.AF_UNIX) as lock:
        try:
            lock.bind(f"\0agentworld-mcp-{digest}")
        except OSError as error:
            raise InputError(
                f"another environment uses the url of the MCP server {name}, and both would change"
                " one state; set collect.num_workers to 1, or wait until the other one has ended"
            ) from error
        yield
