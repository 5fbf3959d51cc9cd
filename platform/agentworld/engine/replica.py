"""One server of an engine, with its queue, breaker and check.

A request waits for its turn, or is refused if the queue is full. Then the breaker may refuse it, so
that requests that waited for a broken server fail at once. Then the server is checked to be the
pinned one.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine

from agentworld.engine.base import BROKEN, Completion, CompletionRequest, Engine
from agentworld.engine.breaker import Breaker, State
from agentworld.errors import EngineError

_WAITING_PER_TURN = 64
_FIRST_GUESS_SECONDS = 1.0  # seconds of an answer, before the first is measured
_WEIGHT_OF_LAST_ANSWER = 0.1
_HANGING_SECONDS = 30.0
_SECONDS_BETWEEN_CHECKS = 30.0
_LONGEST_CHECK_SECONDS = 10.0  # every request waits for the check

Check = Callable[[], Coroutine[None, None, None]]
"""Checks what a server is; raises EngineError if it is not the pinned one."""


class Replica:
    """A server with at most `concurrency` concurrent requests; `queue` more wait in order.

    `check` runs before the first request, after a failure, and at intervals, because another server
    may have been started at the address.
    """

    def __init__(
        self,
        name: str,
        server: Engine,
        check: Check | None = None,
        *,
        concurrency: int,
        queue: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._check = check
        self._concurrency = concurrency
        self._queue = concurrency * _WAITING_PER_TURN if queue is None else queue
        self._clock = clock
        self._turns = asyncio.Semaphore(concurrency)
        self._num_requests = 0  # requests that are running or waiting
        self._mean_seconds = _FIRST_GUESS_SECONDS
        self._breaker = Breaker(name, clock)
        self._check_task: asyncio.Task[None] | None = None
        self._checked_until = 0.0
        self._is_removed = False

    @property
    def state(self) -> State:
        """The state of the breaker."""
        return self._breaker.state

    async def complete(self, request: CompletionRequest) -> Completion:
        """The server's answer; raises EngineError, of kind `capacity` if the queue is full and of
        kind `open` while the breaker is open.
        """
        if self._is_removed:
            raise EngineError("this replica was removed; use another one")
        if self._num_requests >= self._concurrency + self._queue:
            raise self._refusal()
        arrival = self._clock()
        self._num_requests += 1
        try:
            async with self._turns:
                return await self._take_turn(request, arrival)
        finally:
            self._num_requests -= 1
            await self._close_if_unused()

    async def remove(self) -> None:
        """Refuses new requests, and closes the connections when the last request has ended."""
        self._is_removed = True
        await self._close_if_unused()

    async def _close_if_unused(self) -> None:
        if self._is_removed and self._num_requests == 0:
            await self._server.close()

    def _refusal(self) -> EngineError:
        """The refusal, with the time until one more request would have its turn."""
        pause = self._mean_seconds * (self._queue + 1) / self._concurrency
        return EngineError(
            f"{self._concurrency} requests are running and {self._queue} wait, which is the limit;"
            f" retry in {pause:.1f} s, or add a replica",
            kind="capacity",
            retry_after_seconds=pause,
        )

    async def _take_turn(self, request: CompletionRequest, arrival: float) -> Completion:
        start = self._clock()
        try:
            completion = await self._ask_if_healthy(request)
        except EngineError as error:
            error.queued_seconds = start - arrival
            raise
        seconds = self._clock() - start
        self._mean_seconds += _WEIGHT_OF_LAST_ANSWER * (seconds - self._mean_seconds)
        return completion._replace(queued_seconds=start - arrival)

    async def _ask_if_healthy(self, request: CompletionRequest) -> Completion:
        generation, start = self._breaker.enter(), self._clock()
        healthy: bool | None = None
        is_down = False
        try:
            completion = await self._ask_if_pinned(request)
            healthy = True
        except EngineError as error:
            healthy = False if error.kind in BROKEN else None
            is_down = error.is_down
            raise
        except asyncio.CancelledError:
            # a client that gives up after so long shows that the server hangs
            healthy = False if self._clock() - start >= _HANGING_SECONDS else None
            raise
        finally:
            self._breaker.leave(generation, healthy=healthy, is_down=is_down)
        return completion

    async def _ask_if_pinned(self, request: CompletionRequest) -> Completion:
        if self._check is None:
            return await self._server.complete(request)
        check_task = self._current_check(self._check)
        try:
            await asyncio.shield(check_task)  # other requests wait for it
            return await self._server.complete(request)
        except EngineError as error:
            if error.kind in BROKEN:
                self._forget(check_task)
            raise

    def _current_check(self, check: Check) -> asyncio.Task[None]:
        if self._check_task is None or self._clock() >= self._checked_until:
            self._check_task = asyncio.create_task(_in_time(check))
            self._check_task.add_done_callback(self._forget_failed)
            self._checked_until = self._clock() + _SECONDS_BETWEEN_CHECKS
        return self._check_task

    def _forget_failed(self, check_task: asyncio.Task[None]) -> None:
        """Makes the next request start a new check, even if no request waited for this one."""
        if check_task.cancelled() or check_task.exception():
            self._forget(check_task)

    def _forget(self, check_task: asyncio.Task[None]) -> None:
        if self._check_task is check_task:
            self._check_task = None


async def _in_time(check: Check) -> None:
    try:
        async with asyncio.timeout(_LONGEST_CHECK_SECONDS):
            await check()
    except TimeoutError as error:
        raise EngineError(
            f"an engine was not checked within {_LONGEST_CHECK_SECONDS:.0f} s; try again",
            kind="slow",
        ) from error
