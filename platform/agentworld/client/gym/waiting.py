"""A blocking run: Gymnasium is synchronous, and the client is asynchronous."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from pydantic import SecretStr

from agentworld.client.simulator import SimulatorClient
from agentworld.errors import InputError
from agentworld.records.garbled import redact
from agentworld.records.run import AgentRun, RunOpening

Simulator = str | SecretStr | SimulatorClient
"""The service's address, or the caller's own client."""

THREAD = "agentworld-gym"
_PART_SECONDS = 1.0
_CLOSED = "this environment is closed; open another one"

_Answer = TypeVar("_Answer")


class _Request(Generic[_Answer]):
    """Work in the event loop's thread for which another thread waits.

    The waiting thread takes no lock in Python code, because an interrupt would leave it locked, and
    holds no future that an interrupt could leave uncancelled.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, _Answer]]) -> None:
        self._work = work
        self._task: asyncio.Task[_Answer] | None = None
        self._ended: SimpleQueue[asyncio.Task[_Answer]] = SimpleQueue()

    def start(self) -> None:
        """Starts the work; called in the event loop's thread."""
        self._task = asyncio.create_task(self._work())
        self._task.add_done_callback(self._ended.put)

    def cancel(self) -> None:
        """Cancels the work; called in the event loop's thread, after `start` or instead of it."""
        if self._task:
            self._task.cancel()

    def wait(self) -> asyncio.Task[_Answer]:
        """Waits for the task to end.

        Waits in short intervals, because Python handles a signal that arrives just before a wait
        only after the wait.
        """
        while True:
            with suppress(Empty):
                return self._ended.get(timeout=_PART_SECONDS)


class WaitingRun:
    """An open run whose requests are sent from an event loop in its own thread.

    Raises SimulatorError if the run cannot be opened, and then leaves no thread.
    """

    def __init__(self, client: SimulatorClient, run: str | RunOpening) -> None:
        self.client = client
        self.closed = False
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        # A daemon thread, so that a program can end without closing the environment.
        self._thread = threading.Thread(target=self._work, name=THREAD, daemon=True)
        self._thread.start()
        try:
            self.run: AgentRun = self.ask(lambda: _enter(client, run))
        except BaseException:
            self.close()
            raise

    def ask(self, work: Callable[[], Coroutine[Any, Any, _Answer]]) -> _Answer:
        """Returns or raises the result of the work; an interrupt cancels it."""
        if self.closed:
            raise InputError(_CLOSED)
        request = _Request(work)
        try:
            self._loop.call_soon_threadsafe(request.start)
            return request.wait().result()
        except asyncio.CancelledError as error:  # another thread closed this meanwhile
            raise InputError(_CLOSED) from error
        except BaseException:
            self._loop.call_soon_threadsafe(request.cancel)
            raise

    def close(self, last: Callable[[], Coroutine[Any, Any, object]] | None = None) -> None:
        """Runs `last`, closes the connections and ends the thread; a second call does nothing."""
        if self.closed:
            return
        try:
            if last:
                self.ask(last)
            self.ask(self.client.close)
        finally:
            self.closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _work(self) -> None:
        with self._runner:
            self._loop.run_forever()


def client_of(simulator: Simulator, concurrency: int = 1) -> SimulatorClient:
    """The given client, or a new one for the address."""
    if isinstance(simulator, SimulatorClient):
        return simulator
    url = simulator.get_secret_value() if isinstance(simulator, SecretStr) else simulator
    return SimulatorClient(url, concurrency=concurrency)


def hide_credential(simulator: Simulator) -> Simulator:
    """The same simulator with the credential of its address hidden when printed."""
    if isinstance(simulator, str) and redact(simulator) != simulator:
        return SecretStr(simulator)
    return simulator


async def _enter(client: SimulatorClient, run: str | RunOpening) -> AgentRun:
    if isinstance(run, RunOpening):
        return await client.open_run(run)
    return await client.resume_run(run)
