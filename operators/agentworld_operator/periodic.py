"""Periodic work, and retries."""

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
    """Calls `work` at intervals until it is cancelled. A failure is logged and does not end it."""
    if not at_once:
        await asyncio.sleep(seconds)
    while True:
        try:
            await work()
        except AgentworldError as error:
            _log.warning("%s", error)
        await asyncio.sleep(seconds)


async def retry(seconds: float, work: Callable[[], Awaitable[Result]]) -> Result:
    """Retries `work` and returns its result; raises an error that a retry cannot correct, such as a
    missing right. A process that ends is noticed in monitoring, and one that waits is not.
    """
    while True:
        try:
            return await work()
        except AgentworldError as error:
            if not error.retryable:
                raise
            _log.warning("%s", error)
        await asyncio.sleep(seconds)
