"""Results of concurrent requests; one failure does not discard the other results."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from agentworld.errors import SimulatorError

Work = Callable[[], Coroutine[Any, Any, None]]


async def all_of(works: Iterable[Work]) -> list[BaseException | None]:
    """Waits for all; returns the exception of each, or null."""
    return await asyncio.gather(*(work() for work in works), return_exceptions=True)


def failure_of(call: str, failed: Mapping[int, BaseException], num_envs: int) -> BaseException:
    """One error for several failed environments, with their numbers.

    An error other than SimulatorError (of the caller, or of a disk) is returned unchanged.
    """
    errors = [error for error in failed.values() if isinstance(error, SimulatorError)]
    for error in failed.values():
        if not isinstance(error, SimulatorError):
            return error
    first, retryable = errors[0], all(error.retryable for error in errors)
    pauses = [
        error.retry_after_seconds for error in errors if error.retry_after_seconds is not None
    ]
    advice = f"; repeat the {call} unchanged; only these send a request again" if retryable else ""
    failure = SimulatorError(
        f"of {num_envs} environments {', '.join(map(str, failed))} got no answer ({first}){advice}",
        kind=first.kind,
        retryable=retryable,
        retry_after_seconds=max(pauses, default=None),
    )
    failure.__cause__ = first
    return failure
