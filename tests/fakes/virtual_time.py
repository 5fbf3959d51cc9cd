"""An event loop whose time passes while nobody has anything to do, and by just as much as is slept.

Threads take `thread_seconds` of it, after which their work is done at once and in this thread.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Selector(selectors.DefaultSelector):
    """Waits for no timer: the time jumps to it."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout and 0)
        if timeout and not ready:
            self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """To be given to an `asyncio.Runner`."""

    thread_seconds = 0.0

    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    def run_in_executor(
        self, _executor: object, call: Callable[..., Result], *arguments: object
    ) -> asyncio.Future[Result]:
        """Who no longer waits for a thread leaves it at its work."""

        async def work() -> Result:
            await asyncio.sleep(self.thread_seconds)
            return call(*arguments)

        return asyncio.shield(self.create_task(work()))


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """As `asyncio.run`, in a time of its own."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)
