"""Runs a function on batches in several processes; the results keep the order of the batches."""

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from typing import Self, TypeVar

from agentworld.errors import StoreError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Workers(AbstractContextManager["Workers"]):
    """A pool of processes that starts with the first batch; one worker runs in this process."""

    def __init__(self, num_workers: int) -> None:
        self._num_workers = num_workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self._num_workers > 1:
            # Not fork: the caller may run threads, whose locks a forked worker would inherit.
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self._num_workers, mp_context=spawn, initializer=leave_with_parent
            )
        return self

    def __exit__(self, *_error: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def map(
        self, function: Callable[[_Item], _Result], items: Iterable[_Item]
    ) -> Iterator[_Result]:
        """The results in the order of the items; queues only as many items as the workers need."""
        if self._pool is None:
            yield from map(function, items)
            return
        futures: deque[Future[_Result]] = deque()
        for item in items:
            futures.append(self._pool.submit(function, item))
            if len(futures) > self._num_workers + 1:
                yield _result_of(futures.popleft())
        while futures:
            yield _result_of(futures.popleft())


def _result_of(future: Future[_Result]) -> _Result:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise StoreError(
            "a worker was killed, probably because the machine has too little memory; lower"
            " prepare.num_workers, and run it again"
        ) from error


def num_processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def leave_with_parent() -> None:
    """Ends this worker when its parent is killed; otherwise it would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_after, args=(parent,), daemon=True).start()


def _leave_after(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)
