"""The training stages. Class defaults are for a pretrained model; those of the tiny model, which is
made from nothing, stand in its own recipes.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from agentworld.records.base import Record

# Told only where it is said: recipes that say nothing of it keep their digests.
_ZeroStage = Annotated[Literal[1, 2, 3] | None, Field(exclude_if=lambda stage: stage is None)]


class ModelRecipe(Record):
    """Where training starts: a causal LM that is there, or a new Qwen3 with its own tokenizer."""

    base: str | None = None
    """A model with tokenizer and chat template: a folder, `s3://BUCKET/FOLDER`, a registered
    version as `models:/NAME/3`, or a hub's model at a commit, as `Qwen/Qwen3-0.6B@<40 hex digits>`.
    """
    chat_template: str | None = None
    """In the place of the base's own: a template's text, or the path of one.

    All other fields are of a new model, and unused with a base.
    """
    vocabulary_size: int = 704
    hidden_size: int = 128
    intermediate_size: int = 256
    num_layers: int = 5
    num_heads: int = 2
    num_key_value_heads: int = 2
    head_size: int = 64
    context_tokens: int = 1024
    num_warmup_texts: int = 12_000
    """Texts of its domain that a new model learns to copy from before it sees an episode."""
    seed: int = 0

    @model_validator(mode="after")
    def _template_has_a_base(self) -> Self:
        if self.chat_template is not None and self.base is None:
            raise ValueError(
                "chat_template is read with a base alone, and a new model has its own; name"
                " model.base, or leave chat_template out"
            )
        return self


class EndpointRecipe(Record):
    """An OpenAI-compatible server that somebody else runs."""

    url: str = "http://127.0.0.1:8000"
    model: str = "default"
    timeout_seconds: float = 60.0


class NextTokenRecipe(Record):
    """Next-token loss: CPT and SFT of a world, imitation by an agent."""

    stage: Literal["cpt", "sft", "imitation"]
    learning_rate: float = Field(1e-5, gt=0)
    """Of AdamW: all weights, or embeddings and norms with Muon."""
    muon_learning_rate: float | None = None
    """Of Muon for the matrices inside the layers; null uses AdamW for everything."""
    adam_betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = Field(0.01, ge=0)
    """Of both optimizers."""
    max_gradient_norm: float = Field(1.0, gt=0)
    """Longer gradients are shortened to it."""
    tokens_per_batch: int = Field(8192, gt=0)
    """Padding counts."""
    sequence_tokens: int | None = Field(8192, gt=0)
    """What comes later in an episode is cut off; null cuts nothing."""
    gradient_checkpointing: bool = True
    """Computes activations again in the backward pass: a third more time for far less memory."""
    compile_layers: bool = False
    """`torch.compile`: costs a minute, then takes a third off each step; needs a C++ compiler."""
    epochs: float = 1.0
    warmup_share: float = 0.03
    decay_share: float = 0.3
    """Last share of the steps, in which the learning rate falls to a twentieth."""
    reasoning: Literal["off", "recorded-state", "endpoint"] = "off"
    """What stands before an observation: nothing, the recorded state, or an endpoint's thoughts."""
    endpoint: EndpointRecipe = EndpointRecipe()
    """Where `reasoning: endpoint` asks."""
    checkpoint_every: int = 200
    """Steps between checkpoints that a killed run resumes from."""
    zero_stage: _ZeroStage = None
    """What each of several processes has only a part of: 1 the optimizer's state, 2 gradients too,
    3 weights too; null: nothing. Not with Muon, which takes matrices whole.
    """
    seed: int = 0

    @model_validator(mode="after")
    def _can_be_shared(self) -> Self:
        if self.zero_stage is None:
            return self
        if self.stage == "imitation":
            raise ValueError("imitation is trained by one process alone; leave zero_stage out")
        if self.muon_learning_rate is not None:
            raise ValueError(
                f"zero_stage {self.zero_stage} cuts the matrices that Muon takes whole; set"
                " muon_learning_rate to null, or leave zero_stage out"
            )
        return self


class RewardRecipe(Record):
    """How a predicted observation is rewarded (Qwen-AgentWorld section 3.4, RWML section 2.2)."""

    rubric: Literal["rules", "endpoint"] = "rules"
    """A rule scorer, or a judge behind an OpenAI-compatible endpoint."""
    endpoint: EndpointRecipe = EndpointRecipe()
    """Where `rubric: endpoint` asks."""
    rubric_weight: float = 0.9
    rule_weight: float = 0.1
    embedding_weight: float = 0.0
    """RWML's binary embedding reward; 0 leaves it out."""
    embedding_model: str | None = None
    """A folder with an embedding model."""
    embedding_distance: float = 0.2
    """RWML's tau_d: nearer than this is a hit."""

    @property
    def folder(self) -> str | None:
        """Of the embedding model, where one is asked."""
        return self.embedding_model if self.embedding_weight else None


class GroupRlRecipe(Record):
    """What both kinds of RL share: groups of attempts at the same prompt."""

    algorithm: str = "gspo"
    """`grpo` has importance ratios by token, `gspo` by sequence; see `train.algorithms`."""
    learning_rate: float
    num_steps: int
    prompts_per_step: int
    group_size: int
    temperature: float = 1.0
    max_tokens: int
    """Of one answer."""
    checkpoint_every: int = 10
    seed: int = 0


class WorldRlRecipe(GroupRlRecipe):
    """RL of a world on one turn per trajectory (Qwen-AgentWorld section 3.4)."""

    stage: Literal["rl"] = "rl"
    learning_rate: float = 1e-6
    num_steps: int = 20
    prompts_per_step: int = 16
    group_size: int = 8
    max_tokens: int = 1024
    gradient_checkpointing: bool = True
    """See `NextTokenRecipe`."""
    zero_stage: _ZeroStage = None
    """What each of several processes has only a part of; see `NextTokenRecipe`."""
    reward: RewardRecipe = RewardRecipe()


class AgentRlRecipe(GroupRlRecipe):
    """RL of an agent in the pinned simulator and nowhere else."""

    learning_rate: float = 1e-6
    num_steps: int = 24
    prompts_per_step: int = 12
    group_size: int = 6
    max_tokens: int = 256


class AgentRecipe(Record):
    """A policy from the world model's weights: imitation of explorers, then RL."""

    stage: Literal["agent"] = "agent"
    name: str = "agent"
    domain: str | None = None
    """The kind of world whose tasks it learns; null is the only one that its simulator has."""
    imitation: NextTokenRecipe = NextTokenRecipe(stage="imitation")
    imitation_episodes: int = Field(3_000, gt=0)
    rl: AgentRlRecipe = AgentRlRecipe()
