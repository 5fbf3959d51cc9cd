"""An event loop whose time advances only while it is idle, by exactly the time slept.

Threads take `thread_seconds` of it, after which their work is done at once and in this thread.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Selector(selectors.DefaultSelector):
    """Never waits for a timer: the time jumps to it."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout and 0)
        if timeout and not ready:
            self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop for an `asyncio.Runner`."""

    thread_seconds = 0.0

    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    def run_in_executor(
        self, _executor: object, call: Callable[..., Result], *arguments: object
    ) -> asyncio.Future[Result]:
        """A canceled caller leaves the thread's work running."""

        async def work() -> Result:
            await asyncio.sleep(self.thread_seconds)
            return call(*arguments)

        return asyncio.shield(self.create_task(work()))


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Like `asyncio.run`, with virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)
