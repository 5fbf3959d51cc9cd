"""Restarts an engine that ends by itself."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from threading import Event
from typing import Any

from agentworld.engine.server import ServedEngine
from agentworld.errors import EngineError

_SECONDS_BETWEEN_LOOKS = 0.2

Start = Callable[[Event], AbstractContextManager[ServedEngine]]
"""Starts an engine at its fixed address; setting the event cancels the start."""

_log = logging.getLogger(__name__)


class SupervisedEngine:
    """The state of an engine that is restarted."""

    def __init__(self, first: ServedEngine, supervision: Future[None]) -> None:
        self.url = first.url
        self.model = first.model
        self._supervision = supervision

    def check(self) -> None:
        """Raises the reason if the engine ended and could not be restarted."""
        if self._supervision.done():
            self._supervision.result()


@contextmanager
def supervise(start: Start) -> Iterator[SupervisedEngine]:
    """Keeps an engine running while the block runs, except for the time of a restart.

    Raises the error of the first start, and at the end of the block the error of a failed restart.
    """
    stopping, first = Event(), Future[ServedEngine]()
    with ThreadPoolExecutor(1, "engine") as threads:
        # One thread for all starts, because a server ends with the thread that started it.
        supervision = threads.submit(_keep, start, stopping, first)
        try:
            futures: tuple[Future[Any], ...] = first, supervision
            wait(futures, return_when=FIRST_COMPLETED)
            if not first.done():
                supervision.result()
            engine = SupervisedEngine(first.result(), supervision)
            yield engine
            engine.check()
        except Exception:
            # The block's error may be a consequence of the engine's end.
            if supervision.done():
                supervision.result()
            raise
        finally:
            stopping.set()


def _keep(start: Start, stopping: Event, first: Future[ServedEngine]) -> None:
    """Restarts the engine until it is stopped or does not start."""
    while not stopping.is_set():
        is_ready = False
        try:
            with start(stopping) as engine:
                is_ready = True
                if first.done():
                    _log.warning("%s answers again", engine.server.name)
                else:
                    first.set_result(engine)
                while not stopping.wait(_SECONDS_BETWEEN_LOOKS):
                    engine.server.check()
        except EngineError as error:
            if stopping.is_set():
                return
            if not is_ready:
                raise
            _log.warning("%s\nrestarting it", error)
