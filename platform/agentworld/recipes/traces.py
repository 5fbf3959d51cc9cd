"""Examples for SFT that a teacher writes."""

from pydantic import Field

from agentworld.recipes.endpoint import EndpointRecipe
from agentworld.records.base import Record


class TracesRecipe(Record):
    """Thoughts and observations of a teacher, selected by a judge (Qwen-AgentWorld section 3.3)."""

    teacher: EndpointRecipe = EndpointRecipe()
    """A model that thinks before it answers; the paper does not report which."""
    judge: EndpointRecipe = EndpointRecipe()
    """A model that compares the teacher's answers with the truth; not reported by the paper."""
    rollouts: int = Field(3, gt=0)
    """Answers of the teacher to each prompt; the paper has 3."""
    temperature: float = Field(0.6, gt=0)
    """Temperature of the teacher; not reported, and 0.6 is that of the paper's evaluation."""
    turns: int | None = Field(1, gt=0)
    """Turns of each trajectory that are prompts, drawn from those that the loss counts; the paper
    draws one, and null takes all."""
    pairwise: bool = True
    """Selects by comparing each pair of answers, as the paper does; false selects by score alone.

    The paper does not report details: here each pair is compared in both orders, most wins win,
    then the score.
    """
    threshold: float = Field(4.0, ge=1, le=5)
    """Least mean score of a selected answer, of 1 to 5; the paper has a threshold and does not
    report it, and 4 is `good`."""
    seed: int = 0
    """Seed of the choice of turns."""

    @property
    def identity(self) -> "TracesRecipe":
        """The fields that traces depend on, without the addresses of the endpoints."""
        endpoints = {"teacher": self.teacher.identity, "judge": self.judge.identity}
        return self.model_copy(update=endpoints)
