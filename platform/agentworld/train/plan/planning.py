"""Plans a stage on given GPUs, or refuses it with the reason and a change that would fit."""

import re
from collections.abc import Iterator
from typing import NamedTuple, get_args

from transformers import PreTrainedConfig

from agentworld.errors import InputError
from agentworld.recipes.train import LoraRecipe, NextTokenRecipe, Offload
from agentworld.records.training_plan import Gpus, Moment, StageMemory, StagePlan
from agentworld.train.cards import CARDS, GIB
from agentworld.train.plan.activations import Activations, count_activations
from agentworld.train.plan.architecture import Architecture, architecture_of, model_without_memory
from agentworld.train.plan.memory import most_tokens, stage_memory
from agentworld.train.plan.speed import speed_of
from agentworld.train.sequence_parallel import check_architecture, check_processes

_GPUS = re.compile(r"(?:([1-9]\d{0,3})x)?([1-9]\d{0,2})x(\w+)")
_USABLE = 0.95
"""The rest is for CUDA, NCCL and fragmentation; our choice."""
_MOST_GPUS = 1_024
_GPUS_OF_A_NODE = 8
_SHORTEST = 1_024
_MOMENTS: dict[Moment, str] = {
    "load": "when the model is loaded",
    "training": "in training",
    "save": "when the model is saved",
}
_PARTS = {
    "weights": "the weights",
    "gradients": "the gradients",
    "optimizer": "the optimizer's state",
    "activations": "the activations",
    "logits": "the logits of the loss",
    "buffers": "the buffers of casts and exchanges",
}


class Terms(NamedTuple):
    """The inputs of a plan besides the recipe."""

    gpus: Gpus
    node_gib: float | None = None
    """Memory of a node in GiB; null if unknown."""
    num_tokens: int | None = None
    """Tokens of one epoch."""
    tokens_per_second: float | None = None
    """Measured tokens per second of one GPU."""
    price: float | None = None
    """Price of a GPU-hour."""


class _Change(NamedTuple):
    """Another recipe, or other GPUs, that might fit."""

    description: str
    recipe: NextTokenRecipe
    gpus: Gpus


def parse_gpus(text: str) -> Gpus:
    """`8xH100` is one node with eight; `4x8xH100` are four such nodes."""
    parts = _GPUS.fullmatch(text)
    if parts is None or parts[3] not in CARDS:
        raise InputError(
            f"{text!r} names no GPUs; write 8xH100, or 4x8xH100 for four nodes, with one of:"
            f" {', '.join(CARDS)}"
        )
    return Gpus(num_nodes=int(parts[1] or 1), per_node=int(parts[2]), card=parts[3])


class Planner:
    """Plans for one model, and caches its counts."""

    def __init__(self, config: PreTrainedConfig) -> None:
        self._config = config
        self._architectures: dict[LoraRecipe | None, Architecture] = {}
        self._activations: dict[tuple[LoraRecipe | None, bool, int], Activations] = {}

    def plan(self, recipe: NextTokenRecipe, terms: Terms) -> StagePlan:
        """Raises InputError if the stage does not fit, or these GPUs cannot share sequences."""
        self._check_sharing(recipe, terms.gpus)
        gpus, memory = terms.gpus, self.memory(recipe, terms.gpus)
        if problem := _problem(memory, terms):
            raise InputError(
                f"{recipe.stage} does not fit {gpus}: {problem}; {self._advice(recipe, terms)}"
            )
        model = self.architecture(recipe)
        length = recipe.sequence_tokens or min(recipe.tokens_per_batch, model.context_tokens)
        speed = speed_of(model, recipe, length, gpus, terms.tokens_per_second)
        num_tokens = terms.num_tokens and round(terms.num_tokens * recipe.epochs)
        seconds = num_tokens / speed.tokens_per_second if speed and num_tokens else None
        gpu_hours = None if seconds is None else seconds * gpus.count / 3_600
        return StagePlan(
            stage=recipe.stage,
            model=model.name,
            num_weights=model.num_weights,
            num_trained=model.num_trained,
            gpus=gpus,
            usable=usable_bytes(gpus),
            memory=memory,
            speed=speed,
            num_tokens=num_tokens,
            seconds=seconds,
            gpu_hours=gpu_hours,
            cost=None if gpu_hours is None or terms.price is None else gpu_hours * terms.price,
        )

    def memory(self, recipe: NextTokenRecipe, gpus: Gpus) -> StageMemory:
        """The memory, whether or not it fits."""
        model = self.architecture(recipe)
        num_tokens = most_tokens(recipe, gpus.count, model.context_tokens)
        key = recipe.lora, recipe.compile_layers, num_tokens
        if key not in self._activations:
            without_memory = model_without_memory(self._config, recipe)
            self._activations[key] = count_activations(
                without_memory, num_tokens, is_compiled=recipe.compile_layers
            )
        return stage_memory(model, self._activations[key], recipe, num_tokens, gpus)

    def architecture(self, recipe: NextTokenRecipe) -> Architecture:
        """The architecture with the recipe's adapter."""
        if recipe.lora not in self._architectures:
            without_memory = model_without_memory(self._config, recipe)
            self._architectures[recipe.lora] = architecture_of(without_memory)
        return self._architectures[recipe.lora]

    def _check_sharing(self, recipe: NextTokenRecipe, gpus: Gpus) -> None:
        if recipe.sequence_parallel:
            check_processes(recipe.sequence_parallel, gpus.count)
            without_memory = model_without_memory(self._config, recipe)
            check_architecture(without_memory, recipe.sequence_parallel)

    def _advice(self, recipe: NextTokenRecipe, terms: Terms) -> str:
        """The first change that makes it fit."""
        for change in _changes(recipe, terms.gpus):
            if self._fits(change.recipe, terms._replace(gpus=change.gpus)):
                return change.description
        return "no change of the recipe makes it fit; take GPUs and nodes with more memory"

    def _fits(self, recipe: NextTokenRecipe, terms: Terms) -> bool:
        """Whether it fits; activations, which take seconds to count, are checked last."""
        try:
            self._check_sharing(recipe, terms.gpus)
        except InputError:
            return False
        model, no_activations = self.architecture(recipe), Activations(0, 0, 0, 0)
        num_tokens = most_tokens(recipe, terms.gpus.count, model.context_tokens)
        least_memory = stage_memory(model, no_activations, recipe, num_tokens, terms.gpus)
        return not (
            _problem(least_memory, terms) or _problem(self.memory(recipe, terms.gpus), terms)
        )


def usable_bytes(gpus: Gpus) -> int:
    """The usable memory of each GPU."""
    return int(CARDS[gpus.card].gib * GIB * _USABLE)


def _problem(memory: StageMemory, terms: Terms) -> str:
    """What does not fit; empty if everything does."""
    usable = usable_bytes(terms.gpus)
    for moment, rank_memory in memory.gpu.items():
        if rank_memory.total > usable:
            part = rank_memory.largest()
            most = _gib(getattr(rank_memory, part))
            return (
                f"{_MOMENTS[moment]} each GPU would hold {_gib(rank_memory.total)} of the"
                f" {_gib(usable)} that can be used, most of it {_PARTS[part]} ({most})"
            )
    for moment, num_bytes in memory.node.items():
        if terms.node_gib is not None and num_bytes > terms.node_gib * GIB:
            return (
                f"{_MOMENTS[moment]} the processes of a node hold {_gib(num_bytes)} of its"
                f" {_gib(int(terms.node_gib * GIB))} together"
            )
    return ""


def _changes(recipe: NextTokenRecipe, gpus: Gpus) -> Iterator[_Change]:
    """Cheap changes first; each includes checkpointing and ZeRO, if these are possible."""
    stage, done = recipe.stage, ""
    if not recipe.gradient_checkpointing:
        recipe = recipe.model_copy(update={"gradient_checkpointing": True})
        done = f"set {stage}.gradient_checkpointing to true"
        yield _Change(done, recipe, gpus)
        done += ", and "
    if recipe.muon_learning_rate is not None:
        return  # it needs whole matrices
    if gpus.count > 1 and recipe.zero_stage != 3:
        for zero_stage in range((recipe.zero_stage or 0) + 1, 4):
            recipe = recipe.model_copy(update={"zero_stage": zero_stage})
            yield _Change(f"{done}set {stage}.zero_stage to {zero_stage}", recipe, gpus)
        done += f"set {stage}.zero_stage to 3, and "
    num_sharing = 2 * (recipe.sequence_parallel or 1)
    while not recipe.packing and gpus.per_node % num_sharing == 0:
        shared = recipe.model_copy(update={"sequence_parallel": num_sharing})
        yield _Change(f"{done}set {stage}.sequence_parallel to {num_sharing}", shared, gpus)
        num_sharing *= 2
    yield from _offloads(recipe, gpus, done)
    tokens = max(recipe.tokens_per_batch, recipe.sequence_tokens or 0)
    while (tokens := tokens // 2) >= _SHORTEST:
        shorter = {"tokens_per_batch": tokens, "sequence_tokens": tokens}
        description = f"{done}set {stage}.tokens_per_batch and {stage}.sequence_tokens to {tokens}"
        yield _Change(description, recipe.model_copy(update=shorter), gpus)
    if recipe.lora is None:
        adapted = recipe.model_copy(update={"lora": LoraRecipe()})
        yield _Change(f"{done}train an adapter with {stage}.lora", adapted, gpus)
    recipe = recipe.model_copy(update={"zero_stage": 3})
    while gpus.count < _MOST_GPUS:
        if gpus.per_node < _GPUS_OF_A_NODE:
            gpus = gpus.model_copy(update={"per_node": 2 * gpus.per_node})
        else:
            gpus = gpus.model_copy(update={"num_nodes": 2 * gpus.num_nodes})
        yield _Change(f"{done}take {gpus} with {stage}.zero_stage 3", recipe, gpus)


def _offloads(recipe: NextTokenRecipe, gpus: Gpus, done: str) -> Iterator[_Change]:
    """Offloading: slower, with the same result."""
    if gpus.count == 1 or recipe.offload == "parameters":
        return
    for offload in get_args(Offload):
        moved = recipe.model_copy(update={"offload": offload})
        yield _Change(f"{done}set {recipe.stage}.offload to {offload}", moved, gpus)


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / GIB:.1f} GiB"
