"""A queue of names: each name is handled by one worker at a time, and again when it is due."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Literal, get_args

from agentworld.errors import AgentworldError

_log = logging.getLogger(__name__)

RoundResult = Literal["ok", "failed", "bug"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0


class WorkQueue:
    """Calls `work` for each name that is added, and again after the seconds that it returns.

    Failed work is retried with increasing delays.
    """

    def __init__(self, work: Callable[[str], Awaitable[float | None]], *, workers: int) -> None:
        self._work = work
        self._num_workers = workers
        self._waiting: asyncio.Queue[str] = asyncio.Queue()
        self._queued: set[str] = set()
        self._busy: set[str] = set()
        self._added_while_busy: set[str] = set()
        self._failures: dict[str, int] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.results: dict[RoundResult, int] = dict.fromkeys(get_args(RoundResult), 0)
        """Counts by result."""

    @property
    def depth(self) -> int:
        """The number of names that wait for a worker."""
        return len(self._queued) + len(self._added_while_busy)

    def add(self, name: str) -> None:
        """Queues a name, unless it waits already; a name at work is queued again afterwards."""
        if name in self._busy:
            self._added_while_busy.add(name)
        elif name not in self._queued:
            self._queued.add(name)
            self._waiting.put_nowait(name)

    async def run(self) -> None:
        """Works until it is cancelled."""
        async with asyncio.TaskGroup() as workers:
            for _ in range(self._num_workers):
                workers.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            name = await self._waiting.get()
            self._queued.discard(name)
            if timer := self._timers.pop(name, None):
                timer.cancel()  # the work that begins now decides when the next is due
            self._busy.add(name)
            pause = await self._try(name)
            self._busy.discard(name)
            if pause is not None:
                loop = asyncio.get_running_loop()
                self._timers[name] = loop.call_later(pause, self.add, name)
            if name in self._added_while_busy:
                self._added_while_busy.discard(name)
                self.add(name)

    async def _try(self, name: str) -> float | None:
        """Handles a name; returns the seconds until it is due again."""
        try:
            pause = await self._work(name)
        except AgentworldError as error:
            _log.warning("%s: %s", name, error)
            self.results["failed"] += 1
        except Exception:  # noqa: BLE001 - a mistake of ours with one object keeps no other waiting
            _log.exception("%s: our mistake", name)
            self.results["bug"] += 1
        else:
            self.results["ok"] += 1
            self._failures.pop(name, None)
            return pause
        failed = self._failures[name] = self._failures.get(name, 0) + 1
        return float(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(failed - 1, 10)))
