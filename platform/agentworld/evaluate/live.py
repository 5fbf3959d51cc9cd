"""The live shell as a world: what an agent is validated against, and never trained in."""

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from agentworld.domains.sandbox import SandboxLimits
from agentworld.domains.terminal.shell import LiveShell
from agentworld.domains.terminal.start import parse_files
from agentworld.domains.terminal.tasks import files_agree
from agentworld.errors import NotFound, SandboxBroken
from agentworld.records.task import Task
from agentworld.records.trajectory_log import Sampled
from agentworld.scoring.success import outcome

_Result = TypeVar("_Result")


class LiveStep(NamedTuple):
    """What the live shell showed; the fields are those of a simulator's step."""

    observation: str
    reward: float | None
    done: bool
    truncated: bool
    low_confidence: bool = False
    """Never: what a shell shows is so."""


@dataclass
class _Episode:
    task: Task
    shell: LiveShell
    num_steps: int = 0


class LiveWorld:
    """A fresh sandbox for each episode; `num_steps` counts every command that was tried.

    The transcript's rule decides, as in a simulator. A success must also be in the files, which the
    sandbox reads out of the agent's reach; `num_disagreements` counts those that are not, and their
    reward is 0.

    A step raises SandboxBroken where its command took too long, flooded or left the shell:
    there is no observation, and the episode is over by the agent's own act.
    """

    def __init__(
        self, limits: SandboxLimits = SandboxLimits(), *, seconds: float = 5.0, num_threads: int = 8
    ) -> None:
        self.num_steps = 0
        self.num_disagreements = 0
        self._limits = limits
        self._seconds = seconds
        self._episodes: dict[str, _Episode] = {}
        # Threads of its own: a sandbox dies with the very thread that opened it.
        self._threads = ThreadPoolExecutor(num_threads)

    async def reset(self, task: Task) -> str:
        """Opens a sandbox that holds the task's files."""
        shell = await self._in_thread(lambda: self._open(task))
        episode = secrets.token_hex(8)
        self._episodes[episode] = _Episode(task, shell)
        return episode

    async def step(self, episode: str, action: str, _: Sampled | None = None, /) -> LiveStep:
        """Runs one command; raises NotFound where the episode is over or was never begun."""
        if episode not in self._episodes:
            raise NotFound(f"no live episode {episode} is open; reset begins one")
        current = self._episodes[episode]
        current.num_steps += 1
        self.num_steps += 1
        done = True
        try:
            result, agree = await self._in_thread(lambda: _act(current, action))
            self.num_disagreements += not agree
            done = result.done
        except ValueError as error:
            raise SandboxBroken(f"the action is no text for a shell: {error}") from error
        finally:
            if done:
                current.shell.close()
                del self._episodes[episode]
        return result

    async def close(self) -> None:
        """Ends every sandbox."""
        for episode in self._episodes.values():
            episode.shell.close()
        self._episodes.clear()
        self._threads.shutdown()

    def _open(self, task: Task) -> LiveShell:
        shell = LiveShell(self._limits, seconds=self._seconds)
        shell.reset(parse_files(task.initial_state))
        return shell

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _act(episode: _Episode, action: str) -> tuple[LiveStep, bool]:
    """What is seen, and whether the files agree with the transcript's success."""
    task = episode.task
    observation = episode.shell.step(action)
    ended = outcome(task, task.turn_limit, episode.num_steps, action, observation)
    agree = not ended.reward or files_agree(task.success, episode.shell.files()) is not False
    reward = ended.reward if agree else 0.0
    return LiveStep(observation, reward, ended.done, ended.truncated), agree
