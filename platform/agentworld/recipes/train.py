"""The training stages. Class defaults are the vetted settings."""

from typing import Literal

from pydantic import Field

from agentworld.records.base import Record


class ModelRecipe(Record):
    """Where training starts: a folder with a causal LM, or a new Qwen3 with its own tokenizer."""

    base: str | None = None
    """A folder with weights, tokenizer and chat template; then the fields below are unused."""
    vocabulary_size: int = 512
    hidden_size: int = 128
    intermediate_size: int = 384
    num_layers: int = 5
    num_heads: int = 4
    num_key_value_heads: int = 2
    context_tokens: int = 1024
    seed: int = 0


class NextTokenRecipe(Record):
    """Next-token loss on the observations that a data set marks as targets: CPT and SFT."""

    stage: Literal["cpt", "sft"]
    learning_rate: float = 3e-3
    """Of AdamW: embeddings and norms, or all weights without Muon."""
    muon_learning_rate: float | None = 0.02
    """Of Muon for the matrices inside the layers; null uses AdamW for everything."""
    tokens_per_batch: int = 4096
    epochs: float = 1.0
    warmup_share: float = 0.02
    decay_share: float = 0.3
    """Last share of the steps, in which the learning rate falls to a tenth."""
    reasoning: Literal["off", "recorded-state", "endpoint"] = "off"
    """What stands before an observation: nothing, the recorded state, or an endpoint's thoughts."""
    checkpoint_every: int = 200
    """Steps between checkpoints that a killed run resumes from."""
    seed: int = 0


class RewardRecipe(Record):
    """How a predicted observation is rewarded (Qwen-AgentWorld section 3.4, RWML section 2.2)."""

    rubric: Literal["rules", "endpoint"] = "rules"
    """A rule scorer, or a judge behind an OpenAI-compatible endpoint."""
    rubric_weight: float = 0.9
    rule_weight: float = 0.1
    embedding_weight: float = 0.0
    """RWML's binary embedding reward; 0 leaves it out."""
    embedding_model: str | None = None
    """A folder with an embedding model."""
    embedding_distance: float = 0.2
    """RWML's tau_d: nearer than this is a hit."""


class WorldRlRecipe(Record):
    """GRPO or GSPO on one turn per trajectory (Qwen-AgentWorld section 3.4)."""

    stage: Literal["rl"] = "rl"
    algorithm: Literal["grpo", "gspo"] = "gspo"
    learning_rate: float = 1e-4
    num_steps: int = 20
    prompts_per_step: int = 16
    group_size: int = 8
    temperature: float = 1.0
    max_tokens: int = 64
    reward: RewardRecipe = RewardRecipe()
    checkpoint_every: int = 20
    seed: int = 0


class AgentRecipe(Record):
    """Imitation of exploring episodes, then RL in the pinned simulator and nowhere else."""

    stage: Literal["agent"] = "agent"
    name: str = "terminal-agent"
    imitation_learning_rate: float = 1e-3
    imitation_epochs: float = 1.0
    imitation_episodes: int = 2_000
    learning_rate: float = 3e-4
    num_steps: int = 24
    tasks_per_step: int = 12
    group_size: int = 6
    temperature: float = 1.0
    max_action_tokens: int = 24
    checkpoint_every: int = 8
    seed: int = 0
