"""A circuit breaker: an engine that fails again and again is left alone for a while.

Who asks meanwhile is answered at once, with when to come back, and waits for no timeout. A
request's end counts only for the state that it was asked in: what was asked before the engine
broke says nothing about its repair.
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable, Sequence
from typing import Literal

from agentworld.engine.base import BROKEN, Completion, Engine
from agentworld.errors import EngineError
from agentworld.records.message import Message
from agentworld.records.simulator import Sampling

State = Literal["closed", "open", "half-open"]

_LONG_SECONDS = 30.0

_log = logging.getLogger(__name__)


class CircuitBreaker:
    """Opens after so many failures in a row, or one that says that the engine is not there; then
    one request at a time probes it. A probe keeps its place for `probe_seconds`: it may be a long
    answer, or have been sent to a server that was dead by then, while others would be answered.

    The pause is drawn between 0 and a bound that doubles with each failed probe, so that many
    breakers before one engine do not probe it together; `seed` should differ among them.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        name: str = "the engine",
        failures: int = 5,
        first_pause_seconds: float = 1.0,
        longest_pause_seconds: float = 60.0,
        probe_seconds: float = 10.0,
        seed: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._name = name
        self._limit = failures
        self._first_pause = first_pause_seconds
        self._longest_pause = longest_pause_seconds
        self._probe_seconds = probe_seconds
        self._random = random.Random(seed)
        self._clock = clock
        self._era = 0
        self._failures = 0
        self._probing_until = -math.inf
        self._until: float | None = None
        self._pause = first_pause_seconds

    @property
    def state(self) -> State:
        """`half-open` is the time of the probe."""
        if self._until is None:
            return "closed"
        return "open" if self._clock() < self._until else "half-open"

    async def complete(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        seed: int | None = None,
        *,
        affinity: str = "",
    ) -> Completion:
        """The engine's answer; raises EngineError of kind `open` while it is left alone."""
        era, start = self._enter(), self._clock()
        healthy: bool | None = None
        is_down = False
        try:
            completion = await self._engine.complete(messages, sampling, seed, affinity=affinity)
            healthy = True
        except EngineError as error:
            healthy = False if error.kind in BROKEN else None
            is_down = error.is_down
            raise
        except asyncio.CancelledError:
            # Who waited for so long did not just go away.
            healthy = False if self._clock() - start >= _LONG_SECONDS else None
            raise
        finally:
            self._leave(era, healthy, is_down)
        return completion

    async def close(self) -> None:
        """Lets go of the engine's connections."""
        await self._engine.close()

    def _enter(self) -> int:
        """The era in which a request is asked; raises EngineError where it is not."""
        if self._until is not None:
            now = self._clock()
            remaining = self._until - now
            if remaining > 0 or now < self._probing_until:
                pause = remaining if remaining > 0 else self._first_pause
                raise EngineError(
                    f"{self._name} failed {self._failures} times in a row and is left alone; come"
                    f" back in {pause:.1f} s",
                    kind="open",
                    retry_after_seconds=pause,
                )
            self._probing_until = now + self._probe_seconds
        return self._era

    def _leave(self, era: int, healthy: bool | None, is_down: bool) -> None:
        """Takes in how a request ended; null says nothing about the engine's health."""
        if era != self._era:
            return
        self._probing_until = -math.inf
        if healthy:
            self._failures = 0
            if self._until is not None:
                self._close()
        elif healthy is False:
            self._failures += 1
            if is_down or self._until is not None or self._failures >= self._limit:
                self._open()

    def _open(self) -> None:
        self._era += 1
        pause = self._random.uniform(0, self._pause)
        self._until = self._clock() + pause
        self._pause = min(self._longest_pause, 2 * self._pause)
        _log.warning(
            "%s failed %d times in a row and is left alone for %.1f s",
            *(self._name, self._failures, pause),
        )

    def _close(self) -> None:
        self._era += 1
        self._until = None
        self._pause = self._first_pause
        _log.info("%s answers again", self._name)
