"""Live terminals: each episode's shell runs in a sandbox of its own."""

from contextlib import AbstractAsyncContextManager, aclosing
from random import Random

from agentworld.domains.base import Start
from agentworld.domains.live import Environment, Explorer, LiveDomain, LiveSettings
from agentworld.domains.sandbox import check_sandbox
from agentworld.domains.terminal.environment import TerminalEnvironment
from agentworld.domains.terminal.explorers import new_explorer
from agentworld.domains.terminal.process import SandboxedTerminal
from agentworld.domains.terminal.tasks import NAME, solved_task
from agentworld.records.task import Task


class LiveTerminals:
    """See `LiveDomain`."""

    launchers = frozenset({"bwrap"})

    def check_available(self) -> None:
        """Raises EnvironmentUnavailable where no sandbox can be made."""
        check_sandbox()

    def task(self, seed: int, *, held_out: bool, has_goal: bool = True) -> Task:
        """See `tasks`."""
        return solved_task(seed, held_out=held_out, has_goal=has_goal).task

    def explorer(
        self,
        rng: Random,
        _start: Start,
        task: Task,
        *,
        held_out: bool,
        pursues_task: bool,
        num_turns: int,
    ) -> Explorer:
        """See `explorers`; the task has the files of the start."""
        solved = solved_task(task.seed, held_out=held_out, has_goal=pursues_task)
        return new_explorer(rng, solved, pursues_task=pursues_task, num_turns=num_turns)

    def open(self, settings: LiveSettings) -> AbstractAsyncContextManager[Environment]:
        """A terminal, which has a sandbox from its first episode on."""
        settings.check_no_options(NAME)
        return aclosing(
            TerminalEnvironment(SandboxedTerminal, domain=NAME, seconds=settings.step_seconds)
        )


DOMAIN: LiveDomain = LiveTerminals()
