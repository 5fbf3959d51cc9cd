"""Replicas of one engine that come and go, found by the one name that all of them share.

The name is a headless Service's: it resolves to the addresses of the replicas that are ready, and
to none where the engine is scaled to zero or still starts. Then requests wait, for a while and not
too many: to be asked is what an engine is started for.
"""

import asyncio
import logging
import math
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Sequence

from agentworld.engine.admission import Admission
from agentworld.engine.base import Completion
from agentworld.engine.breaker import CircuitBreaker, State
from agentworld.engine.replicas import Replicas
from agentworld.errors import EngineError
from agentworld.records.message import Message
from agentworld.records.simulator import Sampling
from agentworld.storage.address import redact

_FRESH_SECONDS = 3.0
# With a name server that is slow: what was there is asked meanwhile.
_PATIENCE_SECONDS = 0.5
_WAITING_FOR_EACH = 64  # requests in a replica's queue for each one under way
_NOBODY = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))

_log = logging.getLogger(__name__)

Resolve = Callable[[], Awaitable[Collection[str]]]
"""The URLs of the replicas that are there now; raises OSError where nobody can say."""


def by_name(host: str, port: int) -> Resolve:
    """Asks the event loop's resolver for all addresses of a host."""

    async def resolve() -> set[str]:
        loop = asyncio.get_running_loop()
        try:
            addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno in _NOBODY:
                return set()
            raise
        # A replica with an address of each family is one replica.
        first = socket.AF_INET if any(each[0] == socket.AF_INET for each in addresses) else None
        return {_url(str(each[4][0]), port) for each in addresses if first in (None, each[0])}

    return resolve


class Discovered:
    """One engine of all replicas that are there, each behind the breaker that `connect` makes.

    A replica is kept while its address is there, so that its breaker's knowledge stays, and is let
    go of once the address is gone and nothing is under way in it. At most `most_waiting` requests
    wait for a first address, `wait_seconds` each.
    """

    def __init__(
        self,
        resolve: Resolve,
        connect: Callable[[str], CircuitBreaker],
        *,
        concurrency: int,
        most_waiting: int = 256,
        wait_seconds: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`concurrency` is what each replica takes at once."""
        self._resolve = resolve
        self._connect = connect
        self._concurrency = concurrency
        self._most_waiting = most_waiting
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._sleep = sleep
        self._there: dict[str, _Replica] = {}
        self._replicas: Replicas | None = None
        self._looking: asyncio.Task[None] | None = None
        self._fresh_until = self._patient_until = -math.inf
        self._num_waiting = 0

    async def complete(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        seed: int | None = None,
        *,
        affinity: str = "",
    ) -> Completion:
        """The answer of the replica that knows the prefix, or of the next one; raises EngineError
        where none came in time (`engine`), or too many wait for one (`capacity`).
        """
        came = self._clock()
        await self._look()
        replicas = self._replicas or await self._wait(came)
        waited = self._clock() - came
        try:
            completion = await replicas.complete(messages, sampling, seed, affinity=affinity)
        except EngineError as error:
            error.queued_seconds += waited
            raise
        return completion._replace(queued_seconds=completion.queued_seconds + waited)

    def states(self) -> dict[str, State]:
        """Which replicas are asked, of those that were there when it was looked last."""
        there = self._there.copy()  # a scrape reads it in a thread of its own
        return {redact(url): replica.state for url, replica in there.items()}

    async def close(self) -> None:
        """Lets go of all replicas."""
        if self._looking is not None:
            self._looking.cancel()
        await self._settle(())

    async def _wait(self, came: float) -> Replicas:
        """Until a first replica is there."""
        if self._num_waiting >= self._most_waiting:
            raise EngineError(
                f"no replica is there and {self._num_waiting} requests wait for one, which is all"
                f" that may; come back in {_FRESH_SECONDS:.0f} s",
                kind="capacity",
                retry_after_seconds=_FRESH_SECONDS,
            )
        self._num_waiting += 1
        try:
            while self._replicas is None:
                now = self._clock()
                remaining = came + self._wait_seconds - now
                if remaining <= 0:
                    raise self._nobody(now - came)
                await self._sleep(min(remaining, max(0.0, self._fresh_until - now)))
                await self._look()
            return self._replicas
        finally:
            self._num_waiting -= 1

    def _nobody(self, waited: float) -> EngineError:
        error = EngineError(
            f"no replica came in {self._wait_seconds:.0f} s; one may still start, so come back",
            retry_after_seconds=_FRESH_SECONDS,
        )
        error.queued_seconds = waited
        return error

    async def _look(self) -> None:
        """Asks the name, where that was not done lately; all who come meanwhile wait together."""
        now = self._clock()
        if self._looking is None or self._looking.done():
            if now < self._fresh_until:
                return
            self._looking = asyncio.create_task(self._find())
            self._patient_until = now + _PATIENCE_SECONDS
        if now < self._patient_until or self._replicas is None:
            await asyncio.wait({self._looking}, timeout=_PATIENCE_SECONDS)

    async def _find(self) -> None:
        try:
            await self._settle(await self._resolve())
        except OSError as error:  # what was there is there, until somebody says that it is not
            _log.warning("the engine's addresses are not known anew: %s", error)
        finally:
            self._fresh_until = self._clock() + _FRESH_SECONDS

    async def _settle(self, urls: Collection[str]) -> None:
        """From now on these are asked, and no others."""
        departures = [self._there.pop(url) for url in self._there.keys() - set(urls)]
        for url in sorted(set(urls) - self._there.keys()):
            self._there[url] = _Replica(self._connect(url), self._concurrency, self._clock)
        self._replicas = Replicas(self._there) if self._there else None
        for replica in departures:
            await replica.leave()


class _Replica:
    """What is at one address, while it is there."""

    def __init__(
        self, breaker: CircuitBreaker, concurrency: int, clock: Callable[[], float]
    ) -> None:
        self._breaker = breaker
        queue = concurrency * _WAITING_FOR_EACH
        self._engine = Admission(breaker, concurrency=concurrency, queue=queue, clock=clock)
        self._num_under_way = 0
        self._is_removed = False

    @property
    def state(self) -> State:
        """Whether it is asked."""
        return self._breaker.state

    async def complete(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        seed: int | None = None,
        *,
        affinity: str = "",
    ) -> Completion:
        """Raises EngineError once it is gone, so that another one is asked."""
        if self._is_removed:
            raise EngineError("this replica is gone; ask another one")
        self._num_under_way += 1
        try:
            return await self._engine.complete(messages, sampling, seed, affinity=affinity)
        finally:
            self._num_under_way -= 1
            await self._let_go()

    async def close(self) -> None:
        """Whether or not something is under way."""
        await self._engine.close()

    async def leave(self) -> None:
        """Takes no more, and is closed when what is under way has come to its end."""
        self._is_removed = True
        await self._let_go()

    async def _let_go(self) -> None:
        if self._is_removed and self._num_under_way == 0:
            await self.close()


def _url(address: str, port: int) -> str:
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
