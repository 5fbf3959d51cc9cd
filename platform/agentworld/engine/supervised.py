"""An engine that is started again where it ends by itself."""

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
"""Starts an engine at the address that it always has, and gives up where the event is set."""

_log = logging.getLogger(__name__)


class SupervisedEngine:
    """What is told of an engine that is kept running."""

    def __init__(self, first: ServedEngine, supervision: Future[None]) -> None:
        self.url = first.url
        self.model = first.model
        self._supervision = supervision

    def check(self) -> None:
        """Raises why the engine ended and could not be started again."""
        if self._supervision.done():
            self._supervision.result()


@contextmanager
def supervise(start: Start) -> Iterator[SupervisedEngine]:
    """An engine that answers while the block runs, but for the time that a new start takes.

    Raises what the first start raises, and in the end what kept it from being started again.
    """
    stopping, first = Event(), Future[ServedEngine]()
    with ThreadPoolExecutor(1, "engine") as threads:
        # One thread for all its life: a server ends with the thread that started it.
        supervision = threads.submit(_keep, start, stopping, first)
        try:
            either: tuple[Future[Any], ...] = first, supervision
            wait(either, return_when=FIRST_COMPLETED)
            if not first.done():
                supervision.result()
            engine = SupervisedEngine(first.result(), supervision)
            yield engine
            engine.check()
        except Exception:
            # What failed may only be what a dead engine looks like from outside.
            if supervision.done():
                supervision.result()
            raise
        finally:
            stopping.set()


def _keep(start: Start, stopping: Event, first: Future[ServedEngine]) -> None:
    """Until it is over, or the engine does not start."""
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
            _log.warning("%s\nit is started again", error)
