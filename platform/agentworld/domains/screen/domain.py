"""Any log whose observations are whole screens as text: trees of a phone, a page or a desktop."""

from collections.abc import Sequence

from agentworld.domains.base import SERVED, Domain, Question, Start
from agentworld.domains.text.domain import Text
from agentworld.domains.turn_filters import without_unchanged
from agentworld.records.trajectory import PromptParts, Turn

NAME = "screen"


class Screen(Text):
    """See `Domain`. All that is not here is as in any text."""

    name = NAME
    version = "screen-v1"

    def prompt(self, start: Start, variant: int = SERVED) -> PromptParts:
        """As of any text, but for the task."""
        parts = super().prompt(start, variant)
        task = f"{parts.task_description} An observation is the whole screen after the action."
        return parts.model_copy(update={"task_description": task})

    def normalise(self, observation: str) -> str:
        """As of any text; where lines are indented or broken is no part of a screen."""
        return " ".join(super().normalise(observation).split())

    def keep(self, turns: Sequence[Turn]) -> Sequence[bool]:
        """False for an action after which the screen is as before: it came late, or did nothing."""
        return without_unchanged(turns, self.normalise)

    def question(self, number: int) -> Question:
        """As of any text."""
        return Question(Start(domain=NAME), super().question(number).action)


DOMAIN: Domain = Screen()
