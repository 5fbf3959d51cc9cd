"""A run for a caller that waits: Gymnasium is not asynchronous, and the client is."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from pydantic import SecretStr

from agentworld.client.simulator import SimulatorClient
from agentworld.errors import InputError
from agentworld.records.run import AgentRun, RunOpening
from agentworld.storage.address import redact

Simulator = str | SecretStr | SimulatorClient
"""Its address, or a client of the caller's own."""

THREAD = "agentworld-gym"
_PART_SECONDS = 1.0

_Answer = TypeVar("_Answer")


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
            raise InputError("this environment is closed; open another one")
        future = asyncio.run_coroutine_threadsafe(work(), self._loop)
        try:
            return _result_of(future)
        finally:
            future.cancel()

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


def _result_of(future: Future[_Answer]) -> _Answer:
    """Waits in parts: Python hears a signal that came just before a wait only after it."""
    while True:
        try:
            return future.result(timeout=_PART_SECONDS)
        except TimeoutError:
            if future.done():  # else it is the part that is over
                return future.result()


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
