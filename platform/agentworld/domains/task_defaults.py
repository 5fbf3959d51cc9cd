"""The defaults of a domain whose episodes are made of generated tasks and words."""

from typing import Protocol, TypeVar

from agentworld.domains.base import Question
from agentworld.domains.defaults import BaseDomain
from agentworld.domains.tasks import SolvedTask
from agentworld.domains.words import has_unseen_word

_Solved_co = TypeVar("_Solved_co", bound=SolvedTask, covariant=True)


class SolvedTasks(Protocol[_Solved_co]):
    """The tasks of a domain by their seeds."""

    def __call__(self, seed: int, *, held_out: bool, has_goal: bool = True) -> _Solved_co:
        """The task of a seed, always the same. Without a goal, no action closes it."""


class BaseTaskDomain(BaseDomain):
    """A domain states what `BaseDomain` asks for, and `solved_task` as a static method."""

    solved_task: SolvedTasks[SolvedTask]

    def has_unseen(self, text: str) -> bool:
        """Whether a text has a word that is reserved for held-out episodes."""
        return has_unseen_word(text)

    def question(self, number: int) -> Question:
        """The first step of a held-out task."""
        return self.solved_task(number, held_out=True).question
