"""What a training stage would take on given GPUs."""

from typing import Literal

from agentworld.records.base import Record

Moment = Literal["load", "training", "save"]


class RankMemory(Record):
    """Bytes that one process holds at one moment, by part."""

    weights: int = 0
    """In float32, frozen ones too."""
    gradients: int = 0
    optimizer: int = 0
    """The optimizer's state; with ZeRO also the copy of the weights that it updates."""
    activations: int = 0
    """What the layers keep for the backward pass."""
    logits: int = 0
    """Of the loss, with what the output layer needs."""
    buffers: int = 0
    """Copies in bfloat16, gathered layers, and gradients that are exchanged."""

    @property
    def total(self) -> int:
        """All parts together."""
        return sum(self.model_dump().values())

    def largest(self) -> str:
        """The name of the part that takes most."""
        parts: dict[str, int] = self.model_dump()
        return max(parts, key=parts.__getitem__)


class Gpus(Record):
    """The GPUs of a training."""

    num_nodes: int
    per_node: int
    card: str

    @property
    def count(self) -> int:
        """How many there are; each has one process."""
        return self.num_nodes * self.per_node

    def __str__(self) -> str:
        nodes = f"{self.num_nodes}x" if self.num_nodes > 1 else ""
        return f"{nodes}{self.per_node}x{self.card}"


class StageMemory(Record):
    """By moment; each process holds the same, except where it is said."""

    gpu: dict[Moment, RankMemory]
    """Of a GPU; in training at the moment that takes most."""
    node: dict[Moment, int]
    """Of the first node's own memory: all its processes together."""


class Speed(Record):
    """How fast a training is, and who says so."""

    tokens_per_second: float
    """Of all GPUs."""
    source: str


class StagePlan(Record):
    """What a stage takes."""

    stage: str
    model: str
    """The class of the architecture."""
    num_weights: int
    num_trained: int
    gpus: Gpus
    usable: int
    """Bytes of each GPU that can be used."""
    memory: StageMemory
    speed: Speed | None
    """Null where nothing was measured or is cited for such a model."""
    num_tokens: int | None
    """Of the data, all epochs together; null where it was not said."""
    seconds: float | None
    gpu_hours: float | None
    cost: float | None
    """At the given price of a GPU's hour; null without one, or without a time."""
