"""A live terminal as an environment.

The caller passes a function that starts a shell at a pty, so nothing here depends on the sandbox.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from agentworld.domains.base import ActionError, Start
from agentworld.domains.live import Observation
from agentworld.domains.start_files import describe_files, parse_files
from agentworld.domains.state_fields import Fields
from agentworld.domains.terminal.keys import parse_keys, refusal
from agentworld.domains.terminal.session import TerminalProcess, TerminalSession
from agentworld.errors import EnvironmentBroken
from agentworld.records.task import Task

_Result = TypeVar("_Result")
_BYPRODUCTS = {".python_history", ".viminfo", ".config/procps/"}
"""Files that python3, vim and top create; no task depends on them."""
StartTerminal = Callable[[Mapping[str, str]], TerminalProcess]
"""Starts a shell at a pty, in a home that holds these files (path: text)."""


class TerminalEnvironment:
    """A terminal with its own thread, because a sandbox ends with the thread that opened it."""

    def __init__(self, start_terminal: StartTerminal, *, domain: str, seconds: float = 5.0) -> None:
        self.num_steps = 0
        self._start_terminal = start_terminal
        self._domain = domain
        self._seconds = seconds
        self._session: TerminalSession | None = None
        self._thread = ThreadPoolExecutor(1)

    async def reset(self, task: Task) -> Start:
        """Opens a terminal with the task's files in its home, after closing the one before."""
        await self._in_thread(lambda: self._open(parse_files(task.initial_state)))
        return Start(domain=self._domain, text=task.initial_state)

    async def step(self, action: str) -> Observation:
        """Types keys and returns the screen; an action without keys gets a refusal."""
        self.num_steps += 1
        try:
            keys = parse_keys(action)
        except ActionError as error:
            return Observation(refusal(error))

        def run() -> str:
            session = self._current()
            session.type(keys)
            return session.screen

        return Observation(await self._in_thread(run))

    async def state(self) -> str:
        """The files of the home."""
        return describe_files(await self._in_thread(lambda: self._current().files()))

    async def fields(self) -> Fields:
        """The text of each file of the home."""
        return await self._in_thread(lambda: self._current().files())

    async def check(self, task: Task) -> bool | None:
        """Whether the home has exactly the files that the task asks for."""
        if not task.success.state:
            return None
        expected = parse_files(task.success.state)
        files = await self._in_thread(lambda: self._current().files())
        files = {path: text for path, text in files.items() if path not in _BYPRODUCTS}
        return files == {path: text.removesuffix("\n") for path, text in expected.items()}

    async def aclose(self) -> None:
        """Ends the terminal and everything in it."""
        await self._in_thread(self._close)
        self._thread.shutdown()

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        def guarded() -> _Result:
            try:
                return work()
            except EnvironmentBroken:
                self._close()
                raise

        return await asyncio.get_running_loop().run_in_executor(self._thread, guarded)

    def _open(self, files: Mapping[str, str]) -> None:
        self._close()
        process = self._start_terminal(files)
        try:
            self._session = TerminalSession(process, self._seconds)
        except BaseException:
            process.close()
            raise

    def _close(self) -> None:
        if self._session:
            session, self._session = self._session, None
            session.close()

    def _current(self) -> TerminalSession:
        if self._session is None:
            raise EnvironmentBroken("no episode is open in this terminal; reset begins one")
        return self._session
