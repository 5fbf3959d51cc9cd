"""What the generated tasks of all domains share."""

from dataclasses import dataclass
from typing import NamedTuple

from agentworld.domains.base import Question, Start
from agentworld.domains.words import EpisodeWords
from agentworld.records.task import SuccessRule, Task

TURN_LIMIT = 6


class Goal(NamedTuple):
    """What a task asks for, the rule of its success, and the shortest way to succeed."""

    instruction: str
    success: SuccessRule
    steps: tuple[str, ...]


NO_GOAL = Goal("", SuccessRule(closing="(?!)", output=""), ())
"""The goal of a task that is only a start to explore from; its pattern matches no action."""


@dataclass(frozen=True)
class SolvedTask:
    """A task, its words, and the shortest solution."""

    task: Task
    words: EpisodeWords
    steps: tuple[str, ...]

    @property
    def question(self) -> Question:
        """The task's start and its first step."""
        return Question(Start(domain=self.task.domain, text=self.task.initial_state), self.steps[0])


def new_task(
    name: str,
    goal: Goal,
    *,
    domain: str,
    family: str,
    initial_state: str,
    seed: int,
    held_out: bool,
) -> Task:
    """A task whose id consists of a name, the family and the seed, and says if it is held out."""
    return Task(
        domain=domain,
        id=f"{name}-{family}-{'held-out-' if held_out else ''}{seed}",
        family=family,
        instruction=goal.instruction,
        initial_state=initial_state,
        success=goal.success,
        turn_limit=TURN_LIMIT,
        seed=seed,
    )
