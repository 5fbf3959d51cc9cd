"""The bytes of each process, by part: when a model is loaded, in training, and when it is saved.

Pure: computed from an architecture and its activations. Weights, gradients and moments are float32,
matrices are multiplied in bfloat16, and each GPU has one process.
"""

from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.training_plan import Gpus, RankMemory, StageMemory
from agentworld.train.loss import MOST_LOGITS
from agentworld.train.plan.activations import Activations
from agentworld.train.plan.architecture import Architecture
from agentworld.train.zero import SHARD_BYTES

_FULL, _HALF = 4, 2
"""Bytes of a float32 and of a bfloat16."""
_BY_LOGIT = 12
"""In its backward pass a logit exists in bfloat16 and in float32, each with a gradient."""
_BY_COMPILED_LOGIT = 4
"""The same for a compiled loss, which has no float32 tensor."""


def most_tokens(recipe: NextTokenRecipe, num_ranks: int, context_tokens: int) -> int:
    """Tokens of the largest batch of one process; the rows of a batch are dealt to the processes in
    turn. One process's share can be larger than the others' by a row. With `sequence_parallel` a
    group of processes has a share, and each of them a part of each row's tokens.
    """
    num_sharing = (recipe.sequence_parallel or 1) if num_ranks > 1 else 1
    num_shares = num_ranks // num_sharing
    longest = recipe.sequence_tokens or min(recipe.tokens_per_batch, context_tokens)
    share = -(-recipe.tokens_per_batch // num_shares)
    if num_shares > 1:
        share = min(share + longest, recipe.tokens_per_batch)
    return -(-max(share, longest) // num_sharing)


def stage_memory(
    model: Architecture,
    activations: Activations,
    recipe: NextTokenRecipe,
    num_tokens: int,
    gpus: Gpus,
) -> StageMemory:
    """The memory in all phases."""
    stage = recipe.zero_stage if gpus.count > 1 else None
    whole = _FULL * model.num_weights
    state = _state(model, recipe, stage, gpus.count)
    moments = _training(model, activations, recipe, num_tokens, stage, gpus.count)
    # A sharded model is loaded, and gathered to be saved, layer by layer.
    of_layer = _FULL * model.num_gathered if stage == 3 else 0
    if stage == 3:
        saved = min(whole, SHARD_BYTES + of_layer)  # only the first process writes
    else:
        saved = gpus.per_node * whole if stage else min(whole, SHARD_BYTES)
    offloaded = gpus.per_node * _offloaded(model, recipe, stage, gpus.count)
    loaded = gpus.per_node * (of_layer or whole)
    if recipe.offload == "parameters" and stage:
        loaded += whole // gpus.num_nodes
    return StageMemory(
        gpu={
            "load": RankMemory(weights=state.weights, buffers=of_layer),
            "training": max(moments, key=lambda moment: moment.total),
            "save": state.model_copy(update={"gradients": 0, "buffers": of_layer}),
        },
        node={
            "load": loaded,
            "training": offloaded,
            "save": offloaded + saved,
        },
    )


def state_bytes(model: Architecture, recipe: NextTokenRecipe) -> RankMemory:
    """Weights, gradients and optimizer state of a single process, after its first step."""
    return _state(model, recipe, None, 1)


def _state(
    model: Architecture, recipe: NextTokenRecipe, stage: int | None, num_ranks: int
) -> RankMemory:
    """The memory between the backward pass and the optimizer's step."""
    trained = _FULL * model.num_trained
    moments = 2 * trained
    if recipe.muon_learning_rate is not None:
        moments -= _FULL * model.num_by_muon  # Muon has one moment
    copy = trained if stage else 0
    memory = RankMemory(
        weights=_FULL * model.num_weights // (num_ranks if stage == 3 else 1),
        gradients=trained // (num_ranks if stage in (2, 3) else 1),
        optimizer=(moments + copy) // (num_ranks if stage else 1),
    )
    if stage is None or recipe.offload is None:
        return memory
    moved = {"optimizer": 0}
    if stage > 1:
        moved["gradients"] = 0
    if recipe.offload == "parameters":
        moved["weights"] = 0
    return memory.model_copy(update=moved)


def _offloaded(
    model: Architecture, recipe: NextTokenRecipe, stage: int | None, num_ranks: int
) -> int:
    """The CPU memory of one process in training.

    For each weight that it updates: a copy, two moments, its gradient, and a buffer for the new
    weight (stages 1 and 2) or for the gradient (stage 3). Stages 1 and 2 have another one for
    accumulated gradients.
    """
    if stage is None or recipe.offload is None:
        return 0
    num_tensors = 6 if recipe.accumulation > 1 and stage < 3 else 5
    num_elements = num_tensors * model.num_trained
    if recipe.offload == "parameters":
        num_elements += model.num_weights
    return _FULL * num_elements // num_ranks


def _training(
    model: Architecture,
    activations: Activations,
    recipe: NextTokenRecipe,
    num_tokens: int,
    stage: int | None,
    num_ranks: int,
) -> list[RankMemory]:
    """The memory in the phases of a step that can be the largest: the loss, the last layer, the
    first layer, and the end of the step.
    """
    state = _state(model, recipe, stage, num_ranks)
    hidden = _FULL * num_tokens * model.hidden_size
    embedding = _FULL * model.num_embedding if model.is_embedding_trained else 0
    # The embedding's gradient comes last, unless the output layer shares its weights.
    last = 0 if model.is_embedding_shared else embedding
    # Gradients are freed after each step, but DeepSpeed keeps the memory of its part.
    is_kept = recipe.accumulation > 1 or stage in (2, 3)
    before = state.gradients if is_kept else min(state.gradients, embedding)
    buffers = _exchange(model, stage, num_ranks)
    if recipe.offload is not None and stage in (1, 2):
        buffers += _FULL * max(model.num_embedding, model.num_largest)  # a gradient in transfer
    casts = 0 if recipe.compile_layers else _HALF * model.num_cast
    if recipe.gradient_checkpointing:
        at_loss, in_layer = activations.inputs + activations.rest, activations.largest
    else:
        at_loss, in_layer, casts = activations.layers + activations.rest, 0, 0
    return [
        state.model_copy(update=update)
        for update in (
            {
                "gradients": before,
                "activations": at_loss,
                "logits": _logits(model, num_tokens, num_ranks),
                "buffers": buffers + casts,
            },
            {
                "gradients": before,
                "activations": at_loss + in_layer,
                "buffers": buffers + _FULL * model.num_largest,
            },
            {
                "gradients": max(before, state.gradients - last),
                "activations": in_layer + hidden,
                "buffers": buffers,
            },
            {"activations": hidden, "buffers": buffers},
        )
    ]


def _exchange(model: Architecture, stage: int | None, num_ranks: int) -> int:
    """The buffers for exchanging gradients and weights."""
    if num_ranks == 1:
        return 0
    if stage is None:
        return _FULL * model.num_trained  # the buckets of DistributedDataParallel
    buckets = 2 * _FULL * model.hidden_size**2
    return buckets + (min(_FULL * model.num_weights, SHARD_BYTES) if stage == 3 else 0)


def _logits(model: Architecture, num_tokens: int, num_ranks: int) -> int:
    """The logits of the loss; several processes compute the logits of all tokens at once."""
    num_logits = num_tokens * model.vocabulary_size
    output_layer = _HALF * model.num_embedding
    if model.is_embedding_trained:
        output_layer += (_HALF + _FULL) * model.num_embedding  # a part's gradient, and its cast
    if num_ranks > 1 or num_logits <= MOST_LOGITS:
        return output_layer + _BY_LOGIT * num_logits
    return output_layer + _BY_COMPILED_LOGIT * MOST_LOGITS
