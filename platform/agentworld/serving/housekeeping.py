"""Periodic work of a service."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from agentworld.errors import AgentworldError

_log = logging.getLogger(__name__)


@asynccontextmanager
async def repeating(
    work: Callable[[], Awaitable[object]], every_seconds: float
) -> AsyncIterator[None]:
    """Repeats the work at intervals while the block runs; a failure is logged and retried."""
    task = asyncio.create_task(_repeat(work, every_seconds))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _repeat(work: Callable[[], Awaitable[object]], every_seconds: float) -> None:
    while True:
        await asyncio.sleep(every_seconds)
        try:
            await work()
        except AgentworldError as error:
            _log.warning("%s; retrying in %.0f s", error, every_seconds)
        except Exception:  # noqa: BLE001 - a mistake of ours ends no later attempt
            _log.exception("internal error; retrying in %.0f s", every_seconds)
