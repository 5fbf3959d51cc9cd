"""Live shells; each episode runs in its own sandbox."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TypeVar

from agentworld.domains.base import Start
from agentworld.domains.live import Environment, LiveDomain, LiveSettings, Observation
from agentworld.domains.live_defaults import BaseLiveDomain
from agentworld.domains.shell.explorers import new_explorer
from agentworld.domains.shell.session import LiveShell
from agentworld.domains.shell.tasks import NAME, ShellTask, files_agree, solved_task
from agentworld.domains.start_files import parse_files
from agentworld.domains.state_fields import Fields
from agentworld.errors import EnvironmentBroken
from agentworld.records.task import Task

_Result = TypeVar("_Result")


class ShellEnvironment:
    """A live shell with its own thread, because a sandbox ends with the thread that opened it."""

    def __init__(self, shell: LiveShell) -> None:
        self._shell = shell
        self._thread = ThreadPoolExecutor(1)

    @property
    def num_steps(self) -> int:
        """The number of commands so far, failed ones included."""
        return self._shell.num_steps

    async def reset(self, task: Task) -> Start:
        """Opens a sandbox with the task's files."""
        await self._in_thread(lambda: self._shell.reset(parse_files(task.initial_state)))
        return Start(domain=NAME, text=task.initial_state)

    async def step(self, action: str) -> Observation:
        """Runs one command."""
        try:
            return Observation(await self._in_thread(lambda: self._shell.step(action)))
        except ValueError as error:
            raise EnvironmentBroken(f"the action is no text for a shell: {error}") from error

    async def state(self) -> str:
        """The files of the current folder."""
        return await self._in_thread(self._shell.state)

    async def fields(self) -> Fields:
        """The current folder, and the text of each file below the home."""
        return await self._in_thread(self._shell.fields)

    async def check(self, task: Task) -> bool | None:
        """Whether the files show that the task succeeded; null if no file can show it."""
        return files_agree(task.success, await self._in_thread(self._shell.files))

    async def aclose(self) -> None:
        """Ends the sandbox and everything in it."""
        await self._in_thread(self._shell.close)
        self._thread.shutdown()

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


class LiveShells(BaseLiveDomain[ShellTask]):
    """See `LiveDomain`."""

    def open(self, settings: LiveSettings) -> AbstractAsyncContextManager[Environment]:
        """An environment whose sandbox starts with the first episode."""
        settings.check_no_options(NAME)
        return aclosing(ShellEnvironment(LiveShell(seconds=settings.step_seconds)))


DOMAIN: LiveDomain = LiveShells(solved_task, new_explorer)
