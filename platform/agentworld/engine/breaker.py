"""A circuit breaker for one server.

The outcome of a request counts only in the state in which it was sent: a request from before the
server broke says nothing about its recovery.
"""

import logging
import time
from collections.abc import Callable
from typing import Literal

from agentworld.errors import EngineError

State = Literal["closed", "open", "half-open"]

# Constant, because a probe is one request, which another replica answers if it fails.
_PAUSE_SECONDS = 5.0
# How long one probe keeps others back: its answer may be long, or the server may have died before
# it was sent, while other requests would be answered.
_PROBE_SECONDS = 10.0
_FAILURES = 5  # consecutive failures
_SECONDS_BESIDE_A_PROBE = 1.0  # seconds until a retry; most probes end sooner

_log = logging.getLogger(__name__)


class Breaker:
    """Opens after several consecutive failures, or after one refused connection; after a pause it
    lets one probe through at a time.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._generation = 0
        self._failures = 0
        self._down_until: float | None = None
        self._probing_until = 0.0

    @property
    def state(self) -> State:
        """`half-open` while probes are sent."""
        if self._down_until is None:
            return "closed"
        return "open" if self._clock() < self._down_until else "half-open"

    def enter(self) -> int:
        """The generation of a new request, for `leave`; raises EngineError of kind `open` if the
        breaker is open or a probe is under way.
        """
        if self._down_until is not None:
            now = self._clock()
            remaining = self._down_until - now
            if remaining > 0 or now < self._probing_until:
                pause = remaining if remaining > 0 else _SECONDS_BESIDE_A_PROBE
                raise EngineError(
                    f"{self._name} failed {self._failures} times in a row and gets no requests"
                    f" for now; retry in {pause:.1f} s",
                    kind="open",
                    retry_after_seconds=pause,
                )
            self._probing_until = now + _PROBE_SECONDS
        return self._generation

    def leave(self, generation: int, *, healthy: bool | None, is_down: bool = False) -> None:
        """Records the outcome of a request; null if it says nothing about the server's health."""
        if generation != self._generation:
            return
        self._probing_until = 0.0
        if healthy:
            self._failures = 0
            if self._down_until is not None:
                self._close()
        elif healthy is False:
            self._failures += 1
            if is_down or self._down_until is not None or self._failures >= _FAILURES:
                self._open()

    def _open(self) -> None:
        self._generation += 1
        self._down_until = self._clock() + _PAUSE_SECONDS
        _log.warning(
            "%s failed %d times in a row and gets no requests for %.0f s",
            *(self._name, self._failures, _PAUSE_SECONDS),
        )

    def _close(self) -> None:
        self._generation += 1
        self._down_until = None
        _log.info("%s answers again", self._name)
