"""The counter as a domain: a text with a rule."""

from agentworld.domains.base import OUTPUT, SERVED, Question, Start
from agentworld.domains.text.domain import Text
from agentworld.records.trajectory import PromptParts


class Counter(Text):
    """Everything that is not here is as in any text."""

    name = "counter"
    version = "counter-v1"
    axes = ("consistency",)

    def prompt(self, start, variant=SERVED):
        return PromptParts(task_description="counter", initial_state=start.text)

    def tags(self, start, turns):
        return [frozenset({OUTPUT, turn.action.partition(" ")[0]}) for turn in turns]

    def verify(self, predicted, truth):
        return {"consistency": predicted.strip() == truth.strip()}

    def question(self, number):
        return Question(Start(domain=self.name, text=f"at {number % 9}"), "show")


DOMAIN = Counter()
