"""The replicas of one engine; requests of an episode go to the replica that has cached its prefix.

Rendezvous hashing gives every affinity key its own order of the replicas, the same in every
process. So if a replica is added or removed, only its episodes move. Trying the next replica is not
a retry of an answered request: the failed one gave no answer.
"""

import asyncio
import hashlib
import itertools
import logging
import math
import time
from collections.abc import Awaitable, Callable, Collection

from agentworld.engine.base import Completion, CompletionRequest
from agentworld.engine.breaker import State
from agentworld.engine.discovery import Resolve
from agentworld.engine.replica import Replica
from agentworld.errors import EngineError, InputError
from agentworld.records.garbled import redact

# Failures that another replica may not have. Other kinds come from the request or the model, which
# are the same everywhere.
_OF_ONE_REPLICA = ("engine", "slow", "open", "capacity")
_FRESH_SECONDS = 3.0
# How long to wait for a slow name server; meanwhile the known replicas are used.
_PATIENCE_SECONDS = 0.5

_log = logging.getLogger(__name__)


class EnginePool:
    """Sends a request to the replica that its affinity prefers, and to the next one if that fails.

    The replicas are those at `urls`, or those that `resolve` returns, which change. The pool keeps
    a replica and its health while its address is listed, and closes it once the address is gone and
    its requests have ended. While there is no replica, at most `most_waiting` requests wait,
    `wait_seconds` each, because a request makes the operator start the engine.
    """

    def __init__(
        self,
        connect: Callable[[str], Replica],
        *,
        urls: Collection[str] = (),
        resolve: Resolve | None = None,
        most_waiting: int = 256,
        wait_seconds: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if not urls and resolve is None:
            raise InputError("an engine without replicas cannot answer; name at least one")
        self._connect = connect
        self._resolve = resolve
        self._most_waiting = most_waiting
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._sleep = sleep
        self._replicas = {url: connect(url) for url in urls}
        self._refreshing: asyncio.Task[None] | None = None
        self._fresh_until = self._patient_until = 0.0
        self._num_waiting = 0
        self._anonymous_ids = itertools.count()

    async def complete(self, request: CompletionRequest) -> Completion:
        """The first answer.

        If all replicas fail, raises the EngineError with the shortest retry delay; if no replica
        appeared in time, or too many requests wait, one of kind `starting`.
        """
        arrival = self._clock()
        if self._resolve is not None:
            await self._refresh(self._resolve)
            if not self._replicas:
                await self._wait(self._resolve, arrival)
        waited = self._clock() - arrival
        try:
            completion = await self._ask_in_order(request)
        except EngineError as error:
            error.queued_seconds += waited
            raise
        return completion._replace(queued_seconds=completion.queued_seconds + waited)

    def states(self) -> dict[str, State]:
        """The breaker states of the current replicas, by address without secrets."""
        replicas = self._replicas.copy()  # a scrape reads it from its own thread
        return {redact(url): replica.state for url, replica in replicas.items()}

    async def close(self) -> None:
        """Removes all replicas."""
        if self._refreshing is not None:
            self._refreshing.cancel()
        await self._keep(())

    async def _ask_in_order(self, request: CompletionRequest) -> Completion:
        key = request.affinity or str(next(self._anonymous_ids))
        failures: list[EngineError] = []
        for _, replica in sorted(self._replicas.items(), key=lambda item: _rank(item[0], key)):
            try:
                return await replica.complete(request)
            except EngineError as error:
                if error.kind not in _OF_ONE_REPLICA:
                    raise
                failures.append(error)
        raise min(failures, key=_pause, default=EngineError("the engine is closed; connect again"))

    async def _refresh(self, resolve: Resolve) -> None:
        """Resolves the name if the last result is old; concurrent requests share one lookup."""
        now = self._clock()
        if self._refreshing is None or self._refreshing.done():
            if now < self._fresh_until:
                return
            self._refreshing = asyncio.create_task(self._update(resolve))
            self._patient_until = now + _PATIENCE_SECONDS
        if now < self._patient_until or not self._replicas:
            await asyncio.wait({self._refreshing}, timeout=_PATIENCE_SECONDS)

    async def _update(self, resolve: Resolve) -> None:
        try:
            await self._keep(await resolve())
        except OSError as error:  # if the lookup failed, the known replicas stay
            _log.warning("the engine's addresses could not be read again: %s", error)
        finally:
            self._fresh_until = self._clock() + _FRESH_SECONDS

    async def _keep(self, urls: Collection[str]) -> None:
        """Adds and removes replicas so that these addresses remain."""
        removed = [self._replicas.pop(url) for url in self._replicas.keys() - set(urls)]
        for url in sorted(set(urls) - self._replicas.keys()):
            self._replicas[url] = self._connect(url)
        for replica in removed:
            await replica.remove()

    async def _wait(self, resolve: Resolve, arrival: float) -> None:
        """Waits for a first replica."""
        if self._num_waiting >= self._most_waiting:
            raise EngineError(
                f"no replica is ready, and {self._num_waiting} requests wait, which is the limit;"
                f" retry in {_FRESH_SECONDS:.0f} s",
                kind="starting",
                retry_after_seconds=_FRESH_SECONDS,
            )
        self._num_waiting += 1
        try:
            while not self._replicas:
                now = self._clock()
                remaining = arrival + self._wait_seconds - now
                if remaining <= 0:
                    raise self._queue_timeout(now - arrival)
                await self._sleep(min(remaining, max(0.0, self._fresh_until - now)))
                await self._refresh(resolve)
        finally:
            self._num_waiting -= 1

    def _queue_timeout(self, waited: float) -> EngineError:
        error = EngineError(
            f"no replica of the engine was ready after {self._wait_seconds:.0f} s; one may still"
            f" start, so retry in {_FRESH_SECONDS:.0f} s",
            kind="starting",
            retry_after_seconds=_FRESH_SECONDS,
        )
        error.queued_seconds = waited
        return error


def _rank(url: str, key: str) -> bytes:
    """The rank of a replica for a key; the lowest is tried first."""
    return hashlib.sha256(f"{url} {key}".encode()).digest()


def _pause(error: EngineError) -> float:
    return math.inf if error.retry_after_seconds is None else error.retry_after_seconds
