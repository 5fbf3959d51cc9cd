"""The defaults of a live domain: generated tasks, explorers, and one sandbox for each episode."""

from random import Random
from typing import Generic, Protocol, TypeVar

from agentworld.domains.base import Start
from agentworld.domains.live import Explorer
from agentworld.domains.programs import Program
from agentworld.domains.sandbox import SANDBOX_PROGRAMS, check_sandbox
from agentworld.domains.task_defaults import SolvedTasks
from agentworld.domains.tasks import SolvedTask
from agentworld.records.task import Task

_Solved = TypeVar("_Solved", bound=SolvedTask)
_Solved_contra = TypeVar("_Solved_contra", bound=SolvedTask, contravariant=True)


class NewExplorer(Protocol[_Solved_contra]):
    """Makes an explorer."""

    def __call__(
        self, rng: Random, solved: _Solved_contra, *, pursues_task: bool, num_turns: int
    ) -> Explorer:
        """An explorer of this task that takes at most `num_turns` turns."""


class BaseLiveDomain(Generic[_Solved]):
    """A live domain adds `open`, and overrides what its world does otherwise."""

    launchers = frozenset({"bwrap"})
    programs: tuple[Program, ...] = SANDBOX_PROGRAMS

    def __init__(
        self, solved_task: SolvedTasks[_Solved], new_explorer: NewExplorer[_Solved]
    ) -> None:
        self._solved_task = solved_task
        self._new_explorer = new_explorer

    def check_available(self) -> None:
        """Raises EnvironmentUnavailable if this machine cannot run a sandbox."""
        check_sandbox()

    def task(self, seed: int, *, held_out: bool, has_goal: bool = True) -> Task:
        """The task of a seed, without its solution."""
        return self._solved_task(seed, held_out=held_out, has_goal=has_goal).task

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
        """An explorer that knows the start by the task's seed."""
        solved = self._solved_task(task.seed, held_out=held_out, has_goal=pursues_task)
        return self._new_explorer(rng, solved, pursues_task=pursues_task, num_turns=num_turns)
