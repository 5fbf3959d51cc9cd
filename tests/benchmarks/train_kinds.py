"""One training of the same rows by ours, by a plain loop, or by TRL, for `bench_train`.

`python -m benchmarks.train_kinds KIND FOLDER` prints the tokens per second of an epoch. The plain
loop trains in the same process as ours, alternately.
"""

import json
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models
from torch.nn.functional import cross_entropy
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import SFTConfig, SFTTrainer

from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.progress import OnProgress, ignore_progress
from agentworld.train.batches import Rows, TokenBatches
from agentworld.train.encode import Row
from agentworld.train.model import LanguageModel
from agentworld.train.optimizer import make_optimizer
from agentworld.train.packing import PACKED_ATTENTION, pack
from agentworld.train.trainer import TrainerProgress, train_rows
from benchmarks.random_rows import log_normal_lengths, random_rows

_VOCABULARY = 4_096
_NUM_ROWS = 480
_MEDIAN, _LONGEST = 128, 1_024
_WARM_UP_STEPS = 2
RECIPE = NextTokenRecipe(
    stage="cpt", tokens_per_batch=2_048, packing=True, gradient_checkpointing=False
)


def rows() -> list[Row]:
    """Random tokens; a twentieth of the rows is four times as long as the median."""
    return random_rows(log_normal_lengths(_NUM_ROWS, _MEDIAN, _LONGEST), _VOCABULARY)


def new_model() -> Qwen3ForCausalLM:
    """A model of 5 million parameters."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 4, "head_dim": 64}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = Qwen3Config(vocab_size=_VOCABULARY, tie_word_embeddings=True, **sizes, **heads)
    return Qwen3ForCausalLM(config)


def packed(folder: Path) -> dict[str, float]:
    """Ours with packed rows, and the plain loop with the same batches, two steps of each in turn.

    A step with rows of new lengths takes longer than the next one with the same, because oneDNN
    prepares each shape once. Therefore, the plain loop comes first at every other batch.
    """
    plain_steps = _plain_steps()
    seconds_of_plain: list[float] = []

    def take_turns(step: int, _total: int) -> None:
        if step % 2:
            seconds_of_plain.extend(islice(plain_steps, 2))

    seconds = _seconds_of_ours(RECIPE, folder, take_turns)
    return {
        "ours": _rate(seconds, is_packed=True),
        "plain": _rate(seconds_of_plain, is_packed=True),
    }


def padded(folder: Path) -> dict[str, float]:
    """Ours with padded rows."""
    recipe = RECIPE.model_copy(update={"packing": False})
    return {"padded": _rate(_seconds_of_ours(recipe, folder), is_packed=False)}


def _seconds_of_ours(
    recipe: NextTokenRecipe, folder: Path, between: OnProgress = ignore_progress
) -> list[float]:
    """For each step, without the time between two of them."""
    seconds: list[float] = []
    start = time.perf_counter()

    def on_step(step: int, total: int) -> None:
        nonlocal start
        seconds.append(time.perf_counter() - start)
        between(step, total)
        start = time.perf_counter()

    train_rows(LanguageModel(new_model(), None), recipe, rows(), folder, on_step)
    return seconds


def _plain_steps() -> Iterator[float]:
    """The seconds of each step of a plain torch loop: same model, batches and optimizer."""
    model = new_model()
    model.set_attn_implementation(PACKED_ATTENTION)
    optimizer = make_optimizer(model, RECIPE)
    data = Rows(rows())
    for batch in packed_batches():
        start = time.perf_counter()
        inputs = pack([data[index] for index in batch])
        is_target = inputs.pop("is_target")[:, 1:]
        with torch.autocast("cpu", torch.bfloat16):
            hidden = model.model(**inputs, use_cache=False).last_hidden_state[:, :-1][is_target]
            loss = cross_entropy(
                model.lm_head(hidden).float(), inputs["input_ids"][:, 1:][is_target]
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), RECIPE.max_gradient_norm)
        optimizer.step()
        optimizer.zero_grad()
        yield time.perf_counter() - start


def _rate(seconds: list[float], *, is_packed: bool) -> float:
    """Useful tokens per second, after the first steps."""
    tokens = [sum(lengths) for lengths in _lengths_of_batches(packed=is_packed)]
    assert len(seconds) == len(tokens)
    return sum(tokens[_WARM_UP_STEPS:]) / sum(seconds[_WARM_UP_STEPS:])


def trl(folder: Path) -> dict[str, float]:
    """TRL's SFTTrainer with its defaults; each step counts as the mean of an epoch's."""
    ends: list[float] = []
    own_rows = rows()
    trainer = SFTTrainer(
        model=new_model(),
        args=SFTConfig(str(folder), num_train_epochs=1, use_cpu=True, report_to=[]),
        train_dataset=Dataset.from_list(
            [{"input_ids": row.input_ids.tolist()} for row in own_rows]
        ),
        processing_class=_tokenizer(),
        callbacks=[TrainerProgress(lambda *_: ends.append(time.perf_counter()))],
    )
    trainer.train()
    tokens_per_step = sum(len(row.input_ids) for row in own_rows) / len(ends)
    num_steps = len(ends) - _WARM_UP_STEPS
    return {"trl": tokens_per_step * num_steps / (ends[-1] - ends[_WARM_UP_STEPS - 1])}


def _tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {f"<{number}>": number for number in range(_VOCABULARY)}
    word_level = Tokenizer(models.WordLevel(vocabulary, unk_token="<0>"))
    return PreTrainedTokenizerFast(tokenizer_object=word_level, pad_token="<1>", eos_token="<2>")


def packed_batches() -> TokenBatches:
    """The same batches as ours."""
    return _batches(packed=True)


def _batches(*, packed: bool) -> TokenBatches:
    lengths = [len(row.input_ids) for row in rows()]
    return TokenBatches(lengths, RECIPE.tokens_per_batch, RECIPE.epochs, RECIPE.seed, packed=packed)


def _lengths_of_batches(*, packed: bool) -> list[list[int]]:
    lengths = [len(row.input_ids) for row in rows()]
    return [[lengths[index] for index in batch] for batch in _batches(packed=packed)]


KINDS = {"packed": packed, "padded": padded, "trl": trl}


if __name__ == "__main__":
    kind, folder = sys.argv[1:]
    print(json.dumps(KINDS[kind](Path(folder))))
