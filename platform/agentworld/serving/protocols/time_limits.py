"""A time limit for each of many operations, with one timer for many of them."""

import asyncio
from types import TracebackType


class TimeLimit:
    """`with time_limit:` raises TimeoutError if the block takes longer than `most_seconds`.

    Only the asyncio task that created it may use it: the limit cancels the task, and the block's
    end takes the cancellation back.
    """

    __slots__ = ("_is_over", "_is_running", "_loop", "_most_seconds", "_task", "_timer", "since")

    def __init__(self, most_seconds: float) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("there is no task to cancel")
        self._task = task
        self._most_seconds = most_seconds
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._is_running = self._is_over = False
        self.since = 0.0
        """When the current or the last block began, by the loop's clock."""

    def __enter__(self) -> None:
        self.since, self._is_running, self._is_over = self._loop.time(), True, False
        if self._timer is None:
            self._timer = self._loop.call_later(self._most_seconds, self._check)

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._is_running = False
        if self._is_over and isinstance(error, asyncio.CancelledError):
            self._task.uncancel()
            raise TimeoutError from error

    @property
    def seconds(self) -> float:
        """The seconds since the block began."""
        return self._loop.time() - self.since

    def end(self) -> None:
        """Cancels the timer; call it after the last block."""
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        """Checks the current block, which may have begun long after the timer was set."""
        self._timer = None
        if not self._is_running:
            return
        remaining_seconds = self.since + self._most_seconds - self._loop.time()
        if remaining_seconds > 0:
            self._timer = self._loop.call_later(remaining_seconds, self._check)
        else:
            self._is_over = True
            self._task.cancel()
