"""Where a server's episodes are reached."""

from typing import NamedTuple


class Door(NamedTuple):
    """One server that runs."""

    url: str
    """Of a WebSocket, where a connection is an episode; or of a run, for a wire over HTTP."""
    pid: int
    """Of its process."""
    wire: str = "openenv"
    """The OpenEnv socket, or one of `wires.HTTP_WIRES`."""
