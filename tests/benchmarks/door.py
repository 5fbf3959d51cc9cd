"""Where a server's episodes are reached."""

from typing import NamedTuple


class Door(NamedTuple):
    """One server that runs."""

    url: str
    """Of a WebSocket; a connection to it is an episode."""
    pid: int
    """Of its process."""
