"""The reward of world-model RL."""

from typing import Literal

from agentworld.recipes.endpoint import EndpointRecipe
from agentworld.records.base import Record


class RewardRecipe(Record):
    """The reward of a predicted observation (Qwen-AgentWorld section 3.4, RWML section 2.2)."""

    rubric: Literal["rules", "endpoint"] = "rules"
    """A rule scorer, or a judge behind an OpenAI-compatible endpoint."""
    endpoint: EndpointRecipe = EndpointRecipe()
    """The server that `rubric: endpoint` asks."""
    rubric_weight: float = 0.9
    """Weight of the rubric's score in the reward."""
    rule_weight: float = 0.1
    """Weight of the domain's rule in the reward."""
    embedding_weight: float = 0.0
    """Weight of RWML's binary embedding reward; 0 leaves it out."""
    embedding_model: str | None = None
    """A folder with the embedding model, which `embedding_weight` needs."""
    embedding_distance: float = 0.2
    """RWML's tau_d: an observation at a smaller distance is rewarded."""

    @property
    def folder(self) -> str | None:
        """The folder of the embedding model, if it is used."""
        return self.embedding_model if self.embedding_weight else None

    @property
    def identity(self) -> "RewardRecipe":
        """The fields that rewards depend on, without addresses. The embedding model's content is an
        input of its own.
        """
        changes = {"embedding_model": None, "endpoint": self.endpoint.identity}
        return self.model_copy(update=changes)
