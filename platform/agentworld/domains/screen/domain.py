"""The domain of logs whose observations are whole screens: trees of a phone, page or desktop."""

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
        """The words with single blanks between them: the layout of a screen's text can differ."""
        return " ".join(observation.split())

    def keep(self, turns: Sequence[Turn]) -> Sequence[bool]:
        """False for an action that did not change the screen: it came too late, or did nothing."""
        return without_unchanged(turns, self.normalise)


DOMAIN: Domain = Screen()
