"""Group commit: steps that come while one transaction is written share the next one."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agentworld.records.run import EpisodeStep


class _Waiting(NamedTuple):
    step: EpisodeStep
    written: asyncio.Future[None]


class StepWriter:
    """Writes steps in batches, in a thread; `append` writes all of a batch or nothing."""

    def __init__(self, append: Callable[[Sequence[EpisodeStep]], None]) -> None:
        self._append = append
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def write(self, step: EpisodeStep) -> None:
        """Returns when the step is durable; raises what `append` raises for it."""
        written = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(step, written))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_all())
        await written

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            if not await self._write(batch):
                # One of them is at fault and must not fail the others.
                for waiting in batch:
                    await self._write([waiting])

    async def _write(self, batch: list[_Waiting]) -> bool:
        """Whether every step of the batch now knows what became of it."""
        steps = [waiting.step for waiting in batch]
        (failure,) = await asyncio.gather(
            asyncio.to_thread(self._append, steps), return_exceptions=True
        )
        if failure is not None and len(batch) > 1:
            return False
        for waiting in batch:
            _settle(waiting.written, failure)
        return True


def _settle(written: asyncio.Future[None], failure: BaseException | None) -> None:
    if written.done():  # nobody waits any more
        return
    if failure is None:
        written.set_result(None)
    else:
        written.set_exception(failure)
