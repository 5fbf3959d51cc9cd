"""Work that is done again and again, and work that is tried until it succeeds."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from agentworld.errors import AgentworldError

_log = logging.getLogger(__name__)

Result = TypeVar("Result")


async def every(
    seconds: float, work: Callable[[], Awaitable[object]], *, at_once: bool = True
) -> None:
    """Calls `work` until it is cancelled. A failure is logged, and the next call comes as usual."""
    if not at_once:
        await asyncio.sleep(seconds)
    while True:
        try:
            await work()
        except AgentworldError as error:
            _log.warning("%s", error)
        await asyncio.sleep(seconds)


async def retry(seconds: float, work: Callable[[], Awaitable[Result]]) -> Result:
    """What `work` returns; raises an error that no other try can mend, as a right that is missing.

    A process that ends is noticed, and one that only waits is not.
    """
    while True:
        try:
            return await work()
        except AgentworldError as error:
            if not error.retryable:
                raise
            _log.warning("%s", error)
        await asyncio.sleep(seconds)
