"""A bound on the requests before an engine: what it cannot take is refused, not kept waiting.

It stands before the circuit breaker, so that who waits for a broken engine is told so at once.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

from agentworld.engine.base import Completion, Engine
from agentworld.errors import EngineError
from agentworld.records.message import Message
from agentworld.records.simulator import Sampling

# Before the first answer nothing is known.
_FIRST_GUESS_SECONDS = 1.0
_WEIGHT_OF_THE_LAST = 0.1


class Admission:
    """At most `concurrency` requests are asked at once and at most `queue` wait, in order."""

    def __init__(
        self,
        engine: Engine,
        *,
        concurrency: int,
        queue: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._concurrency = concurrency
        self._queue = queue
        self._clock = clock
        self._turns = asyncio.Semaphore(concurrency)
        self._num_waiting = 0
        self._mean_seconds = _FIRST_GUESS_SECONDS

    async def complete(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        seed: int | None = None,
        *,
        affinity: str = "",
    ) -> Completion:
        """The engine's answer; raises EngineError of kind `capacity` where the queue is full."""
        came = self._clock()
        await self._admit()
        try:
            start = self._clock()
            completion = await self._engine.complete(messages, sampling, seed, affinity=affinity)
            self._learn(self._clock() - start)
        except EngineError as error:
            error.queued_seconds = start - came
            raise
        finally:
            self._turns.release()
        return completion._replace(queued_seconds=start - came)

    async def close(self) -> None:
        """Lets go of the engine's connections."""
        await self._engine.close()

    async def _admit(self) -> None:
        if self._turns.locked() and self._num_waiting >= self._queue:
            raise self._refusal()
        self._num_waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._num_waiting -= 1

    def _refusal(self) -> EngineError:
        """With the time after which one more request would have its turn."""
        pause = self._mean_seconds * (self._num_waiting + 1) / self._concurrency
        return EngineError(
            f"{self._concurrency} requests are asked and {self._num_waiting} wait, which is all"
            f" that may; come back in {pause:.1f} s, or add a replica",
            kind="capacity",
            retry_after_seconds=pause,
        )

    def _learn(self, seconds: float) -> None:
        self._mean_seconds += _WEIGHT_OF_THE_LAST * (seconds - self._mean_seconds)
