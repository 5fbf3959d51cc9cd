"""A run for a caller that waits: Gymnasium is not asynchronous, and the client is."""

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
"""Its address, or a client of the caller's own."""

THREAD = "agentworld-gym"
_PART_SECONDS = 1.0
_CLOSED = "this environment is closed; open another one"

_Answer = TypeVar("_Answer")


class _Request(Generic[_Answer]):
    """Work of the loop's thread that another thread waits for.

    The waiting thread takes no lock of Python code: an interrupt inside of one would leave it
    locked. Nor does it hold a future that the interrupt could keep from being cancelled.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, _Answer]]) -> None:
        self._work = work
        self._task: asyncio.Task[_Answer] | None = None
        self._ended: SimpleQueue[asyncio.Task[_Answer]] = SimpleQueue()

    def start(self) -> None:
        """In the loop's thread."""
        self._task = asyncio.create_task(self._work())
        self._task.add_done_callback(self._ended.put)

    def cancel(self) -> None:
        """In the loop's thread, after `start` or in its place."""
        if self._task:
            self._task.cancel()

    def wait(self) -> asyncio.Task[_Answer]:
        """The task, once it has ended.

        Waits in parts: Python hears a signal that came just before a wait only after it.
        """
        while True:
            with suppress(Empty):
                return self._ended.get(timeout=_PART_SECONDS)


class WaitingRun:
    """An open run whose requests go out from an event loop in a thread of its own.

    Raises SimulatorError where the run cannot be entered, and leaves no thread behind.
    """

    def __init__(self, client: SimulatorClient, run: str | RunOpening) -> None:
        self.client = client
        self.closed = False
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        # A daemon, so that a program ends whose environment nobody closed.
        self._thread = threading.Thread(target=self._work, name=THREAD, daemon=True)
        self._thread.start()
        try:
            self.run: AgentRun = self.ask(lambda: _enter(client, run))
        except BaseException:
            self.close()
            raise

    def ask(self, work: Callable[[], Coroutine[Any, Any, _Answer]]) -> _Answer:
        """What the work returns or raises; whoever is interrupted meanwhile cancels it."""
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
        """Does what is `last`, lets go of the connections and of the thread; happens once."""
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
    """The client that was given, or one for the address."""
    if isinstance(simulator, SimulatorClient):
        return simulator
    url = simulator.get_secret_value() if isinstance(simulator, SecretStr) else simulator
    return SimulatorClient(url, concurrency=concurrency)


def hide_credential(simulator: Simulator) -> Simulator:
    """The same, and whoever prints it sees no credential of its address."""
    if isinstance(simulator, str) and redact(simulator) != simulator:
        return SecretStr(simulator)
    return simulator


async def _enter(client: SimulatorClient, run: str | RunOpening) -> AgentRun:
    if isinstance(run, RunOpening):
        return await client.open_run(run)
    return await client.resume_run(run)
