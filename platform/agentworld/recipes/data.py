"""How episodes are collected and made into a data set."""

from operator import not_
from typing import Self

from pydantic import Field, model_validator

from agentworld.records.base import JsonObject, Record


class CollectRecipe(Record):
    """Recording of live episodes by exploring policies, or import of existing recordings."""

    trajectories: str | None = None
    """A file, a folder or an address with recorded episodes; null records live episodes."""
    format: str | None = None
    """The importer that reads the recordings; null detects it from the files."""
    options: JsonObject = {}
    """Options of that importer, or of the domain's live environments, as `--set` takes them."""
    strict: bool = False
    """Stop at the first record that is not an episode; otherwise such records are quarantined."""
    held_out_share: float = Field(0.05, gt=0, lt=1)
    """Share of the recorded tasks that is held out, if no episode is marked as held out."""

    domain: str | None = None
    """The domain to record in, or of recordings that name none; null is `text` for recordings."""
    mixture: dict[str, float] = Field({}, exclude_if=not_)
    """Several domains to record in, instead of `domain`, with the weight by which episodes are
    drawn from each."""
    num_transitions: int = Field(200_000, gt=0)
    """The least number of turns for training, in addition to held-out episodes."""
    num_held_out_episodes: int = Field(400, gt=0)
    """Live episodes that are recorded for evaluation and never used for training."""
    task_share: float = Field(0.15, ge=0, le=1)
    """Share of the episodes that pursue a task; the others explore."""
    turns_per_episode: int = Field(12, gt=1)
    """Turns of an episode that explores."""
    num_workers: int = Field(3, gt=0)
    """Number of processes that record."""
    record_state: bool = False
    """Also record the true state after each action; `reasoning: recorded-state` needs it."""
    seed: int = 0
    """Seed of the tasks and of the explorers."""

    @property
    def weights(self) -> dict[str, float]:
        """The weights of the domains of live episodes; empty if none is named."""
        return self.mixture or ({self.domain: 1.0} if self.domain else {})

    @model_validator(mode="after")
    def _check_mixture(self) -> Self:
        if self.mixture and (self.domain or self.trajectories or self.options):
            raise ValueError(
                "mixture names the domains of live episodes, which have no options; leave out"
                " domain, trajectories and options, or leave out mixture"
            )
        if any(weight <= 0 for weight in self.mixture.values()):
            raise ValueError("a weight of mixture is not above 0; leave out that domain")
        return self


class MaskRecipe(Record):
    """Share of turns of each class whose loss counts (Qwen-AgentWorld table 3)."""

    retrieval: float = 1.0
    """The observation is new and longer than the action."""
    expansion: float = 1.0
    """The observation repeats the action and adds much."""
    action: float = 1.0
    """The observation is new and short."""
    transform: float = 0.5
    """The observation repeats words of the action and is shorter."""
    boilerplate: float = 0.1
    """The observation repeats half of the action and adds little."""
    echo: float = 0.05
    """The observation repeats nearly all of the action."""
    other: float = 1.0
    """All other turns."""


class PrepareRecipe(Record):
    """Filters, masks and the shares of the pools."""

    cpt_share: float = Field(0.55, gt=0)
    """Share of the training trajectories for CPT."""
    sft_share: float = Field(0.4, gt=0)
    """Share for SFT; what CPT and SFT leave is for RL."""
    min_turns: int = Field(2, ge=1)
    """Shorter trajectories are left out."""
    near_duplicates: float | None = Field(0.8, gt=0.5, le=1)
    """Jaccard similarity from which only the first of two trajectories is kept; null keeps all."""
    leaks: float | None = Field(0.25, gt=0, le=1)
    """Trajectories that share this part of their 13-grams with the held-out pool or a benchmark are
    left out of training; null leaves none out."""
    benchmarks: tuple[str, ...] = ()
    """Benchmarks to look for leaks of: files, folders or addresses of recordings or JSON lines."""
    num_workers: int | None = Field(None, gt=0)
    """Processes; null is one for each processor. The result is the same with any number."""
    mask: MaskRecipe = MaskRecipe()
    redact: bool = True
    """Replace secrets by placeholders such as `[REDACTED:github-token:1]`."""
    control_share: float = Field(0.1, ge=0, le=1)
    """Share of the training trajectories whose prompt says in advance what some turns show."""
    seed: int = 0
    """Seed of the pools, the masks and the instructions."""
