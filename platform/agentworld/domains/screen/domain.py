"""Any log whose observations are whole screens as text: trees of a phone, a page or a desktop."""

from collections.abc import Sequence

from agentworld.domains.base import Domain
from agentworld.domains.text.domain import Text
from agentworld.domains.turn_filters import without_unchanged
from agentworld.records.trajectory import PromptParts, Turn


def _of_screens(template: PromptParts) -> PromptParts:
    task = f"{template.task_description} An observation is the whole screen after the action."
    return template.model_copy(update={"task_description": task})


class Screen(Text):
    """See `Domain`; a method that is not here is that of `Text`."""

    name = "screen"
    version = "screen-v1"
    prompt_templates = tuple(map(_of_screens, Text.prompt_templates))

    def normalise(self, observation: str) -> str:
        """White space does not count: indentation and line breaks are no part of a screen."""
        return " ".join(observation.split())

    def keep(self, turns: Sequence[Turn]) -> Sequence[bool]:
        """False for an action after which the screen is as before: it came late, or did nothing."""
        return without_unchanged(turns, self.normalise)


DOMAIN: Domain = Screen()
