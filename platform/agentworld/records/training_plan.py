"""The resources of a training stage on given GPUs."""

from typing import Literal

from agentworld.records.base import Record

Moment = Literal["load", "training", "save"]


class RankMemory(Record):
    """The memory of one process at one moment, in bytes by part."""

    weights: int = 0
    """In float32, frozen ones too."""
    gradients: int = 0
    optimizer: int = 0
    """The optimizer's state; with ZeRO also its copy of the weights."""
    activations: int = 0
    """Activations that the layers keep for the backward pass."""
    logits: int = 0
    """The logits of the loss, with the output layer's buffers."""
    buffers: int = 0
    """Copies in bfloat16, gathered layers, and gradients in communication."""

    @property
    def total(self) -> int:
        """All parts together."""
        return sum(self.model_dump().values())

    def largest(self) -> str:
        """The name of the largest part."""
        parts: dict[str, int] = self.model_dump()
        return max(parts, key=parts.__getitem__)


class Gpus(Record):
    """The GPUs of a training."""

    num_nodes: int
    per_node: int
    card: str

    @property
    def count(self) -> int:
        """The number of GPUs; each has one process."""
        return self.num_nodes * self.per_node

    def __str__(self) -> str:
        nodes = f"{self.num_nodes}x" if self.num_nodes > 1 else ""
        return f"{nodes}{self.per_node}x{self.card}"


class StageMemory(Record):
    """Memory by moment; equal for all processes, except where noted."""

    gpu: dict[Moment, RankMemory]
    """Of a GPU; during training, at its peak."""
    node: dict[Moment, int]
    """Of the first node's own memory: all its processes together."""


class Speed(Record):
    """The speed of a training, and its source."""

    tokens_per_second: float
    """Of all GPUs."""
    source: str


class StagePlan(Record):
    """The resources of a stage."""

    stage: str
    model: str
    """The class of the architecture."""
    num_weights: int
    num_trained: int
    gpus: Gpus
    usable: int
    """Usable bytes of each GPU."""
    memory: StageMemory
    speed: Speed | None
    """Null if no measurement or citation exists for such a model."""
    num_tokens: int | None
    """Tokens of the data in all epochs; null if not given."""
    seconds: float | None
    gpu_hours: float | None
    cost: float | None
    """The cost at the given price of a GPU's hour; null without a price or a duration."""
