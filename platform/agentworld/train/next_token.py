"""CPT and SFT of a world model: next-token loss on the observations of a data set's pool."""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

from agentworld.domains.base import TinyModel, domain_of
from agentworld.errors import InputError
from agentworld.recipes.train import ModelRecipe, NextTokenRecipe
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.corpus import Corpus
from agentworld.records.metrics import OnMetrics, ignore_metrics
from agentworld.records.progress import OnProgress, share_of
from agentworld.records.sample import Pool, Sample
from agentworld.records.traces import Trace
from agentworld.rendering.messages import system_text
from agentworld.storage.pools import read_dataset, read_pool
from agentworld.storage.traces import read_trace_set, read_traces
from agentworld.train.corpora import Mixture, mix
from agentworld.train.distributed import num_ranks, on_rank_zero, process_group, rank
from agentworld.train.encode import (
    Conversation,
    Row,
    encode,
    encode_texts,
    fit,
    fit_rows,
    split_turns,
    traced_turns,
    truncation,
    whole_episode,
)
from agentworld.train.model import LanguageModel, load_model, new_model
from agentworld.train.parent import Parent
from agentworld.train.reasoner import recorded_thoughts
from agentworld.train.resume import CHECKPOINTS, newest_checkpoint
from agentworld.train.save import save_checkpoint
from agentworld.train.sequence_parallel import check_architecture, check_processes
from agentworld.train.tokenizer import train_tokenizer
from agentworld.train.trainer import train_rows
from agentworld.train.validation import HeldOut, samples_by_domain
from agentworld.train.zero import check_zero

_TOKENIZER_SAMPLES = 3_000
_WARM_UP = "warm-up"


@process_group()
def run(
    recipe: NextTokenRecipe,
    model: ModelRecipe,
    data: Path,
    parent: Parent | None,
    out: Path,
    on_progress: OnProgress,
    on_metrics: OnMetrics = ignore_metrics,
    traces: Path | None = None,
    corpora: Mapping[str, Corpus] = {},
) -> Checkpoint:
    """Trains from `parent`, or a new model if there is none; writes `out/model`.

    With a folder of traces the loss counts only these, thoughts included. Corpora are mixed with
    the episodes by the weights of the recipe.
    """
    _check(recipe, parent, out)
    dataset = read_dataset(data)
    pool: Pool = "cpt" if recipe.stage == "cpt" else "sft"
    tiny_models = [domain_of(name).tiny for name in dataset.domains]
    language_model = (
        load_model(parent, recipe.zero_stage, recipe.offload)
        if parent
        else new_tiny_model(model, tiny_models, _texts(read_pool(data, dataset, pool)))
    )
    check_architecture(language_model.model, recipe.sequence_parallel)
    if recipe.lora:
        language_model = language_model.with_adapter(recipe.lora, recipe.seed)
    # The trainer sends the first process's rows to all.
    is_first = rank() == 0
    samples = read_pool(data, dataset, pool)
    mixture = _mix(recipe, language_model, samples, traces, corpora) if is_first else Mixture([])
    rows = mixture.rows
    held_out = _held_out(recipe, language_model, data)
    # A killed run with a checkpoint of the episodes has finished the copy warm-up.
    is_warm = parent or on_rank_zero(lambda: newest_checkpoint(out / CHECKPOINTS))
    texts = [] if is_warm else warm_up_rows(language_model, model, tiny_models)
    share = 0.0
    if texts:
        one_epoch = recipe.model_copy(update={"epochs": 1.0})
        share = _num_tokens(texts) / (_num_tokens(texts) + recipe.epochs * _num_tokens(rows))
        train_rows(
            language_model, one_epoch, texts, out / _WARM_UP, share_of(on_progress, 0, share)
        )
    on_progress = share_of(on_progress, share, 1)
    metrics = train_rows(language_model, recipe, rows, out, on_progress, on_metrics, held_out)
    metrics |= mixture.figures
    on_rank_zero(lambda: shutil.rmtree(out / _WARM_UP, ignore_errors=True))
    keeps_adapter = recipe.lora and not recipe.lora.merge
    return save_checkpoint(
        language_model if keeps_adapter else language_model.merged(),
        out,
        stage=recipe.stage,
        recipe=recipe,
        parent=parent,
        dataset=dataset,
        traces=read_trace_set(traces).digest if traces else None,
        corpora=mixture.corpora,
        metrics=metrics,
    )


def new_tiny_model(
    model: ModelRecipe, tiny_models: Sequence[TinyModel], texts: Iterable[str]
) -> LanguageModel:
    """A new model for these domains, whose tokenizer learns from these texts."""
    pattern = "|".join(tiny_model.pattern for tiny_model in tiny_models)
    return new_model(model, train_tokenizer(texts, pattern, model.vocabulary_size))


def warm_up_rows(
    language_model: LanguageModel, model: ModelRecipe, tiny_models: Sequence[TinyModel]
) -> list[Row]:
    """The warm-up rows of a new model, before its first episode."""
    texts = [
        text
        for tiny_model in tiny_models
        for text in tiny_model.warm_up(model.num_warmup_texts, model.seed)
    ]
    return list(encode_texts(language_model.tokenizer, texts)) if texts else []


def _check(recipe: NextTokenRecipe, parent: Parent | None, out: Path) -> None:
    """Raises InputError for settings that can be refused before any data is read."""
    check_zero(recipe.zero_stage, out)
    check_processes(recipe.sequence_parallel, num_ranks())
    if recipe.lora and parent is None:
        raise InputError(
            f"{recipe.stage}.lora would freeze the random weights of a new model; name a base as"
            f" model.base or a parent, or leave {recipe.stage}.lora out"
        )


def _num_tokens(rows: list[Row]) -> int:
    return sum(len(row.input_ids) for row in rows)


def _texts(samples: Iterable[Sample]) -> Iterator[str]:
    for sample in islice(samples, _TOKENIZER_SAMPLES):
        yield system_text(sample.prompt)
        for turn in sample.turns:
            yield turn.action
            yield turn.observation


def _rows(
    recipe: NextTokenRecipe, language_model: LanguageModel, conversations: Iterable[Conversation]
) -> list[Row]:
    return fit(encode(language_model.tokenizer, conversations), recipe.sequence_tokens)


def _mix(
    recipe: NextTokenRecipe,
    language_model: LanguageModel,
    samples: Iterable[Sample],
    traces: Path | None,
    corpora: Mapping[str, Corpus],
) -> Mixture:
    conversations = _conversations(recipe, samples, read_traces(traces) if traces else None)
    encoded = list(encode(language_model.tokenizer, conversations))
    mixture = mix(language_model.tokenizer, recipe, fit_rows(recipe, encoded), corpora)
    return mixture._replace(figures=truncation(encoded, recipe.sequence_tokens))


def _held_out(recipe: NextTokenRecipe, language_model: LanguageModel, data: Path) -> HeldOut | None:
    """Held-out samples in the form of the training's rows; null if the recipe does not validate."""
    if recipe.validate_every is None:
        return None
    pool = read_pool(data, read_dataset(data), "held_out")
    by_domain = samples_by_domain(pool, recipe.validation_samples)
    rows = on_rank_zero(
        lambda: {
            domain: _rows(recipe, language_model, _conversations(recipe, samples, None))
            for domain, samples in by_domain.items()
        }
    )
    with_targets = {
        domain: [row for row in of_domain if row.is_target[1:].any()]
        for domain, of_domain in rows.items()
    }
    if not any(with_targets.values()):
        raise InputError(
            f"{recipe.stage}.validate_every needs held-out samples with a turn to predict, and the"
            f" data set in {data} has none; prepare it with some, or leave validate_every out"
        )
    return HeldOut(
        {domain: of_domain for domain, of_domain in with_targets.items() if of_domain},
        recipe.validate_every,
    )


def _conversations(
    recipe: NextTokenRecipe, samples: Iterable[Sample], traces: Iterable[Trace] | None
) -> Iterable[Conversation]:
    if traces is not None:
        return traced_turns(samples, traces)
    if recipe.reasoning == "off":
        return map(whole_episode, samples)
    return chain.from_iterable(split_turns(sample, recorded_thoughts(sample)) for sample in samples)
