"""How episodes are collected and made into a data set."""

from pydantic import Field

from agentworld.records.base import JsonObject, Record


class CollectRecipe(Record):
    """Exploring policies in a live environment, or what was recorded elsewhere."""

    trajectories: str | None = None
    """A file or a folder of recorded episodes, or the address of one; then nothing is done live."""
    format: str | None = None
    """The form of the recordings; found by itself where it is plain."""
    options: JsonObject = {}
    """What the importer of that form is told of the recordings."""
    strict: bool = False
    """A record that is no episode ends the import; else it goes to quarantine."""
    held_out_share: float = Field(0.05, gt=0, lt=1)
    """Of recorded tasks, where no episode is marked as held out."""

    domain: str | None = None
    """Whose environments the explorers act in; of recordings that name none `text`, where it is
    null."""
    num_transitions: int = Field(200_000, gt=0)
    """At least so many turns for training; held-out episodes come on top."""
    num_held_out_episodes: int = Field(400, gt=0)
    task_share: float = Field(0.15, ge=0, le=1)
    """Share of episodes that pursue a task; the others explore."""
    turns_per_episode: int = Field(12, gt=1)
    """Of an episode that explores."""
    num_workers: int = Field(3, gt=0)
    record_state: bool = False
    """Also record the true state after each action, which reasoning needs."""
    seed: int = 0


class MaskRecipe(Record):
    """Share of turns of each class whose loss counts (Qwen-AgentWorld table 3)."""

    retrieval: float = 1.0
    expansion: float = 1.0
    action: float = 1.0
    transform: float = 0.5
    boilerplate: float = 0.1
    echo: float = 0.05
    other: float = 1.0


class PrepareRecipe(Record):
    """Filters, masks and the shares of the pools."""

    cpt_share: float = Field(0.55, gt=0)
    sft_share: float = Field(0.4, gt=0)
    """What neither pool takes is for RL."""
    min_turns: int = Field(2, ge=1)
    near_duplicates: float | None = Field(0.8, gt=0.5, le=1)
    """Of trajectories with this Jaccard similarity or more the first stays; null keeps all."""
    leaks: float | None = Field(0.25, gt=0, le=1)
    """A trajectory that shares this part of its 13-grams with the held-out pool or with a benchmark
    is no training data; null looks for none."""
    benchmarks: tuple[str, ...] = ()
    """Files, folders or addresses of what models are judged by: recordings, or lines of JSON."""
    num_workers: int | None = Field(None, gt=0)
    """Processes; null for one on each processor. They change nothing of the result."""
    mask: MaskRecipe = MaskRecipe()
    redact: bool = True
    """Secrets become placeholders: see `data.redaction`."""
    control_share: float = Field(0.1, ge=0, le=1)
    """Of the trajectories to train on: their prompts say in advance what some turns show."""
    seed: int = 0
