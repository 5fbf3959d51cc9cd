"""Clients as they should be: an episode each, stepping at a steady pace over one of the doors.

The pace is what makes their latencies comparable: as fast as they can, they would be the load
themselves.
"""

import asyncio
import random
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

from websockets.uri import parse_uri

from agentworld.errors import SimulatorError
from benchmarks.episode import Episode
from benchmarks.figures import percentile
from benchmarks.http_episode import HttpEpisode
from benchmarks.wires import Native

_PAUSE_SECONDS = 0.2


class Pace(NamedTuple):
    """How long the steps took that were answered in some time."""

    steps: int
    p50_ms: float
    p99_ms: float


class Health:
    """What healthy clients see: how long their steps took, and every error."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self._seconds = array("d")

    def note(self, asked: float, answered: float) -> bool:
        """Whether to go on, which a healthy client always does."""
        self._seconds.append(answered - asked)
        return True

    def pace(self) -> Pace:
        """Of the steps since this was asked for last."""
        ordered, self._seconds = sorted(self._seconds), array("d")
        if not ordered:
            raise SimulatorError("no step was answered; is the service alive?")
        p50, p99 = percentile(ordered, 0.50), percentile(ordered, 0.99)
        return Pace(len(ordered), 1e3 * p50, 1e3 * p99)


def makers(url: str) -> Sequence[Callable[[], Episode | HttpEpisode]]:
    """What makes an episode, for each door; `url` is of an open run's WebSocket."""
    address, uri = urlsplit(url), parse_uri(url)
    run = address.path.split("/")[2]
    return (
        partial(_PacedEpisode, uri),
        lambda: _PacedHttpEpisode(Native(address.netloc, run)),
    )


async def stay_healthy(make: Callable[[], Episode | HttpEpisode], url: str, health: Health) -> None:
    """One episode after the other on one connection, until it is cancelled."""
    address, loop = urlsplit(url), asyncio.get_running_loop()
    try:
        _, episode = await loop.create_connection(make, address.hostname, address.port)
        await episode.wait()
        await episode.take_steps(health.note)
    except (OSError, SimulatorError) as error:
        health.errors.append(f"{type(error).__name__}: {error}")


class _PacedEpisode(Episode):
    """Waits a little before each step."""

    def _ask_step(self) -> None:
        asyncio.get_running_loop().call_later(_pause(), self._ask_now)

    def _ask_now(self) -> None:
        super()._ask_step()
        self._flush()


class _PacedHttpEpisode(HttpEpisode):
    """The same over HTTP."""

    def _ask_step(self) -> None:
        asyncio.get_running_loop().call_later(_pause(), super()._ask_step)


def _pause() -> float:
    return random.uniform(0.5, 1.5) * _PAUSE_SECONDS
