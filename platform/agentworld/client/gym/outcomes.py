"""What became of several requests at once. None is dropped because another one failed."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from agentworld.errors import SimulatorError

Work = Callable[[], Coroutine[Any, Any, None]]


async def all_of(works: Iterable[Work]) -> list[BaseException | None]:
    """How each ended, once the last one has."""
    return await asyncio.gather(*(work() for work in works), return_exceptions=True)


def failure_of(call: str, failed: Mapping[int, BaseException], num_envs: int) -> BaseException:
    """One error for those of several environments, which it names.

    An error that is not the simulator's (it is our caller's, or a disk's) is told as it is.
    """
    errors = [error for error in failed.values() if isinstance(error, SimulatorError)]
    for error in failed.values():
        if not isinstance(error, SimulatorError):
            return error
    first, retryable = errors[0], all(error.retryable for error in errors)
    pauses = [
        error.retry_after_seconds for error in errors if error.retry_after_seconds is not None
    ]
    advice = f"; repeat the {call} as it was, and only they are asked" if retryable else ""
    failure = SimulatorError(
        f"of {num_envs} environments {', '.join(map(str, failed))} got no answer ({first}){advice}",
        kind=first.kind,
        retryable=retryable,
        retry_after_seconds=max(pauses, default=None),
    )
    failure.__cause__ = first
    return failure
