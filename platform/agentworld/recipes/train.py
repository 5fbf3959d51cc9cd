"""The training stages.

Class defaults are for a pretrained model; the recipes of the tiny model, which is trained from
scratch, override them.
"""

from operator import not_
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from agentworld.recipes.reward import RewardRecipe
from agentworld.records.base import Digest, Record

# Serialised only if set, so that recipes without it keep their digests.
_ZeroStage = Annotated[Literal[1, 2, 3] | None, Field(exclude_if=lambda stage: stage is None)]
Offload = Literal["optimizer", "parameters"]
"""What ZeRO keeps in the CPU's memory; `parameters` includes the optimizer's state."""


class ModelRecipe(Record):
    """Where training starts: an existing causal LM, or a new Qwen3 with its own tokenizer."""

    base: str | None = None
    """A model with tokenizer and chat template: a folder, `s3://BUCKET/FOLDER`, a registered
    version as `models:/NAME/3`, or a hub's model at a commit, as `Qwen/Qwen3-0.6B@<40 hex digits>`.
    """
    chat_template: str | None = None
    """A template's text, or its path, instead of the base's own."""
    vocabulary_size: int = Field(704, gt=0)
    """Tokens of a new model's tokenizer; unused with a base, as are the fields below."""
    hidden_size: int = Field(128, gt=0)
    """Width of the new model's layers."""
    intermediate_size: int = Field(256, gt=0)
    """Width inside the new model's feed-forward layers."""
    num_layers: int = Field(5, gt=0)
    """Layers of the new model."""
    num_heads: int = Field(2, gt=0)
    """Attention heads of each layer of the new model."""
    num_key_value_heads: int = Field(2, gt=0)
    """Key and value heads of each layer of the new model."""
    head_size: int = Field(64, gt=0)
    """Width of each attention head of the new model."""
    context_tokens: int = Field(1024, gt=0)
    """Longest context of the new model."""
    num_warmup_texts: int = Field(12_000, ge=0)
    """Texts of its domain on which a new model learns to copy before it sees an episode."""
    seed: int = 0
    """Seed of the new model's weights and of its first texts."""

    @model_validator(mode="after")
    def _template_has_a_base(self) -> Self:
        if self.chat_template is not None and self.base is None:
            raise ValueError(
                "chat_template is read with a base alone, and a new model has its own; name"
                " model.base, or leave chat_template out"
            )
        return self


class LoraRecipe(Record):
    """LoRA (arXiv 2106.09685): frozen weights, and an adapter of small matrices that is trained."""

    rank: int = Field(32, gt=0, le=512)
    """Rank of the adapter, our choice; arXiv 2405.09673 tries 16, 64 and 256: more learns more."""
    alpha: float = Field(64.0, gt=0)
    """The adapter's output is scaled by `alpha / rank`: 2, as arXiv 2405.09673 recommends."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout of the adapter's inputs in training."""
    target_modules: tuple[str, ...] | None = Field(None, min_length=1)
    """Names of the linear layers with an adapter, as `q_proj`; null is all except the output layer,
    as arXiv 2405.09673 recommends. Experts in one tensor are not linear layers.
    """
    merge: bool = True
    """Merges the adapter into the weights at the end; false keeps it separately in `adapter/`."""


class NextTokenRecipe(Record):
    """Next-token loss: CPT and SFT of a world, imitation by an agent.

    Qwen-AgentWorld reports no rates, batches, epochs or optimizers. RWML (arXiv 2602.05842, table
    A2) reports some of its SFT.
    """

    stage: Literal["cpt", "sft", "imitation"]
    """The section's own name, which every written section must have."""
    learning_rate: float = Field(1e-5, gt=0)
    """Learning rate of AdamW, which trains all weights, or embeddings and norms beside Muon. Not
    reported by Qwen-AgentWorld; RWML's SFT of 8 billion weights has 2e-6.
    """
    muon_learning_rate: float | None = Field(None, gt=0)
    """Learning rate of Muon for the matrices inside the layers; null uses AdamW for all weights."""
    adam_betas: tuple[float, float] = (0.9, 0.95)
    """Decay of AdamW's two moments; not reported."""
    weight_decay: float = Field(0.01, ge=0)
    """Weight decay of both optimizers; not reported."""
    max_gradient_norm: float = Field(1.0, gt=0)
    """Gradients with a larger norm are clipped to this norm; not reported."""
    tokens_per_batch: int = Field(8192, gt=0)
    """Tokens of a batch, padding included; not reported, and RWML has batches of 32 samples."""
    accumulation: int = Field(1, gt=0)
    """Batches whose gradients are added up for one step, if one large batch would not fit."""
    sequence_tokens: int | None = Field(8192, gt=0)
    """Longest sequence; the rest of an episode is cut off, and null cuts nothing. The window of
    Qwen-AgentWorld's SFT is 262,144."""
    packing: bool | None = None
    """Packs several samples into a sequence, without attention between them, so that there is no
    padding; null packs on a GPU if the model's layers support it.
    """
    gradient_checkpointing: bool = True
    """Recomputes activations in the backward pass: a third more time for far less memory."""
    compile_layers: bool = False
    """`torch.compile`: costs a minute, then takes a third off each step; needs a C++ compiler."""
    epochs: float = Field(1.0, gt=0)
    """Epochs: how often each sample is trained on; not reported, and RWML's SFT has 2 epochs."""
    warmup_share: float = Field(0.03, ge=0, le=1)
    """Share of steps at the start, in which the learning rate rises; not reported."""
    decay_share: float = Field(0.3, ge=0, le=1)
    """Share of steps at the end, in which the learning rate falls to a twentieth; not reported."""
    reasoning: Literal["off", "recorded-state"] = "off"
    """The thought before an observation: none, or the recorded state.

    Traces have their own thoughts.
    """
    checkpoint_every: int = Field(200, gt=0)
    """Steps between checkpoints that a killed run resumes from."""
    zero_stage: _ZeroStage = None
    """What several processes shard (DeepSpeed ZeRO): 1 the optimizer's state, 2 also gradients, 3
    also weights; null nothing. Not with Muon, which needs whole matrices.
    """
    offload: Offload | None = Field(None, exclude_if=lambda offload: offload is None)
    """What ZeRO keeps in the CPU's memory, which is slower: `optimizer` its state and gradients,
    `parameters` also the weights, at stage 3; null nothing."""
    sequence_parallel: int | None = Field(None, ge=2, exclude_if=lambda number: number is None)
    """Number of processes that share each sequence, each with a part of its tokens; null is one.

    It must divide the number of processes and of attention heads. Not with packing.
    """
    lora: LoraRecipe | None = Field(None, exclude_if=lambda lora: lora is None)
    """Trains an adapter instead of all weights, with about ten times the learning rate (Schulman et
    al. 2025, LoRA Without Regret); null trains all weights.
    """
    validate_every: int | None = Field(None, gt=0, exclude_if=lambda steps: steps is None)
    """Steps between measurements of the loss on held-out samples, by domain; null measures none."""
    validation_samples: int = Field(64, gt=0, le=10_000, exclude_if=lambda number: number == 64)
    """The most held-out samples of each domain that `validate_every` takes."""
    deterministic: bool = Field(False, exclude_if=not_)
    """Uses torch's deterministic algorithms: only with them a GPU resumes bit for bit. Slower."""
    seed: int = 0
    """Seed of the order of the samples, and of an adapter's first weights."""

    @model_validator(mode="after")
    def _adapter_can_be_trained(self) -> Self:
        if self.lora is None:
            return self
        if self.stage == "imitation":
            raise ValueError("imitation trains all weights, as RL after it does; leave lora out")
        if self.muon_learning_rate is not None:
            raise ValueError(
                "lora trains factors of matrices, and Muon needs the matrices; set"
                " muon_learning_rate to null, or leave lora out"
            )
        return self

    @model_validator(mode="after")
    def _can_be_validated(self) -> Self:
        if self.validate_every is not None and self.stage == "imitation":
            raise ValueError("imitation has no held-out samples; leave validate_every out")
        return self

    @model_validator(mode="after")
    def _can_be_shared(self) -> Self:
        if self.zero_stage is None:
            if self.offload is not None:
                raise ValueError(
                    f"offload {self.offload} moves a process's parts, and only ZeRO makes such"
                    " parts; set zero_stage, or leave offload out"
                )
            return self
        if self.offload == "parameters" and self.zero_stage != 3:
            raise ValueError(
                f"offload parameters has nothing to move at zero_stage {self.zero_stage}, where"
                " each process has all weights; set zero_stage to 3, or offload to optimizer"
            )
        if self.stage == "imitation":
            raise ValueError("imitation is trained by one process alone; leave zero_stage out")
        if self.muon_learning_rate is not None:
            raise ValueError(
                f"zero_stage {self.zero_stage} cuts the matrices that Muon takes whole; set"
                " muon_learning_rate to null, or leave zero_stage out"
            )
        return self

    @model_validator(mode="after")
    def _sequences_can_be_split(self) -> Self:
        if self.sequence_parallel is None:
            return self
        if self.stage == "imitation":
            raise ValueError(
                "imitation is trained by one process alone; leave sequence_parallel out"
            )
        if self.packing:
            raise ValueError(
                f"sequence_parallel {self.sequence_parallel} splits samples that are padded, and"
                " packing puts several into one sequence; set packing to false, or leave"
                " sequence_parallel out"
            )
        return self


class CorpusRecipe(Record):
    """Texts, or prompts with completions, that CPT trains on in addition to episodes."""

    address: str
    """A file, a folder or an address of text files, JSON lines, JSON, CSV or Parquet."""
    content: Digest | None = None
    """The digest that its files must have; a checkpoint shows it. Null accepts all files."""
    weight: float = Field(gt=0)
    """Its tokens for each token of the episodes."""


class CptRecipe(NextTokenRecipe):
    """Next-token loss on episodes, and on corpora in addition."""

    corpora: dict[str, CorpusRecipe] = Field({}, exclude_if=not_)
    """Corpora in addition to episodes, by name (Qwen-AgentWorld section 3.2: single-turn corpora of
    law, medicine and other fields; it reports no weights).
    """


class GroupRlRecipe(Record):
    """Settings of both kinds of RL: groups of rollouts of the same prompt.

    Not reported by Qwen-AgentWorld: rates, batches, group sizes and temperatures.
    """

    algorithm: str = "gspo"
    """`grpo` has importance ratios by token, `gspo` by sequence."""
    learning_rate: float = Field(gt=0)
    """Learning rate of AdamW; not reported, and RWML (arXiv 2602.05842) has 1e-6."""
    num_steps: int = Field(gt=0)
    """Steps of the optimizer; Qwen-AgentWorld shows 440 for its model of 35 billion weights."""
    prompts_per_step: int = Field(gt=0)
    """Prompts of each step; not reported."""
    group_size: int = Field(gt=1)
    """Rollouts for each prompt, which are compared; not reported, and RWML has 8 or 16."""
    temperature: float = Field(1.0, gt=0)
    """Temperature of the rollouts; not reported, and RWML collects with 1."""
    max_tokens: int = Field(gt=0)
    """Longest answer in tokens; not reported."""
    checkpoint_every: int = Field(10, gt=0)
    """Steps between checkpoints that a killed run resumes from."""
    seed: int = 0
    """Seed of the prompts and of the rollouts."""


class WorldRlRecipe(GroupRlRecipe):
    """RL of a world on one turn per trajectory (Qwen-AgentWorld section 3.4)."""

    stage: Literal["rl"] = "rl"
    """The section's own name."""
    learning_rate: float = Field(1e-6, gt=0)
    num_steps: int = Field(20, gt=0)
    prompts_per_step: int = Field(16, gt=0)
    group_size: int = Field(8, gt=1)
    max_tokens: int = Field(1024, gt=0)
    gradient_checkpointing: bool = True
    """Recomputes activations in the backward pass: more time for far less memory."""
    zero_stage: _ZeroStage = None
    """What several processes shard, as `cpt.zero_stage` says."""
    reward: RewardRecipe = RewardRecipe()


class AgentRlRecipe(GroupRlRecipe):
    """RL of an agent in the pinned simulator only."""

    learning_rate: float = Field(1e-6, gt=0)
    num_steps: int = Field(24, gt=0)
    prompts_per_step: int = Field(12, gt=0)
    group_size: int = Field(6, gt=1)
    max_tokens: int = Field(256, gt=0)


class AgentRecipe(Record):
    """A policy from the world model's weights: imitation of explorers, then RL."""

    stage: Literal["agent"] = "agent"
    """The section's own name."""
    name: str = "agent"
    """The name that the agent is registered under."""
    domain: str | None = None
    """The domain whose tasks the agent learns; null uses the only one of its simulator."""
    imitation: NextTokenRecipe = NextTokenRecipe(stage="imitation")
    imitation_episodes: int = Field(3_000, gt=0)
    """Recorded episodes that the agent imitates."""
    rl: AgentRlRecipe = AgentRlRecipe()
