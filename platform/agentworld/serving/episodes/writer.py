"""Group commit: writes that arrive during a transaction share the next one."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from agentworld.errors import StoreError
from agentworld.ledger.writes import EpisodeClosed, NewStep, Write
from agentworld.records.episode import EpisodeStep

_MOST_IN_A_GROUP = 512

# Iterations of the event loop without a new write before a group is written: a transaction costs as
# much as ten more steps in it, an iteration almost nothing.
_QUIET_TURNS = 4


Callback = Callable[[], None]


class _PendingWrite(NamedTuple):
    writes: tuple[Write, ...]
    future: asyncio.Future[None]
    on_written: Callback | None


class Writer:
    """Writes groups, in a thread; `append` writes all of a group or nothing."""

    def __init__(self, append: Callable[[Sequence[Write]], None]) -> None:
        self._append = append
        self._waiting: list[_PendingWrite] = []
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")

    async def write(self, *writes: Write, on_written: Callback | None = None) -> None:
        """Returns when all of these are durable together; raises the errors of `append`."""
        await self.submit(*writes, on_written=on_written)

    def submit(self, *writes: Write, on_written: Callback | None = None) -> asyncio.Future[None]:
        """A future that is done when these and all earlier writes are durable.

        They are written even if the future is cancelled. `on_written` is called in the event loop
        when they are durable, before waiting tasks continue.
        """
        if self._task is None or self._task.done():
            # once for each group, not for each step
            self._loop = asyncio.get_running_loop()
            self._task = self._loop.create_task(self._write_all())
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(_PendingWrite(writes, future, on_written))
        return future

    async def close(self) -> None:
        """Waits for pending writes."""
        if self._task:
            await self._task
        self._thread.shutdown()

    async def _write_all(self) -> None:
        while self._waiting:
            await self._wait_for_more()
            group = self._waiting[:_MOST_IN_A_GROUP]
            self._waiting = self._waiting[_MOST_IN_A_GROUP:]
            if not await self._write(group):
                # one of them is wrong and must not fail the others
                for waiting in group:
                    await self._write([waiting])

    async def _wait_for_more(self) -> None:
        """Waits for further writes that are about to arrive."""
        num_quiet_turns = 0
        while num_quiet_turns < _QUIET_TURNS and len(self._waiting) < _MOST_IN_A_GROUP:
            num_waiting = len(self._waiting)
            await asyncio.sleep(0)
            num_quiet_turns = 0 if len(self._waiting) > num_waiting else num_quiet_turns + 1

    async def _write(self, group: list[_PendingWrite]) -> bool:
        """Writes a group; returns whether the result of each of its writes is known."""
        writes = [write for waiting in group for write in waiting.writes]
        failure = None
        try:
            await self._loop.run_in_executor(self._thread, self._append, writes)
        except Exception as error:  # noqa: BLE001 - whoever waits raises it
            failure = error
        # If the store is down, all fail together: each alone would wait for it in turn.
        is_unavailable = isinstance(failure, StoreError) and failure.retryable
        if failure is not None and len(group) > 1 and not is_unavailable:
            return False
        for waiting in group:
            if waiting.on_written is not None and failure is None:
                waiting.on_written()
            _settle(waiting.future, failure)
        return True


def _settle(future: asyncio.Future[None], failure: Exception | None) -> None:
    if future.done():  # no task waits any more
        return
    if failure is None:
        future.set_result(None)
    else:
        future.set_exception(failure)


def writes_of(run: str, step: EpisodeStep) -> list[Write]:
    """A step, and the end of its episode if it is the last one."""
    step_write = NewStep(run, step)
    if step.ending is None:
        return [step_write]
    return [step_write, EpisodeClosed(run, step.episode, step.number, step.head, step.ending)]
