"""One training of the same rows by ours, by a plain loop, or by TRL: what `bench_train` times.

`python -m benchmarks.train_kinds KIND FOLDER` prints the tokens a second of an epoch.
"""

import json
import sys
import time
from pathlib import Path

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models
from torch.nn.functional import cross_entropy
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import SFTConfig, SFTTrainer

from agentworld.recipes.train import NextTokenRecipe
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
    """Of 5 million parameters."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 4, "head_dim": 64}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = Qwen3Config(vocab_size=_VOCABULARY, tie_word_embeddings=True, **sizes, **heads)
    return Qwen3ForCausalLM(config)


def ours(folder: Path, *, packing: bool = True) -> tuple[list[float], list[int]]:
    """Ends of the steps, and the useful tokens of each."""
    ends: list[float] = []
    recipe = RECIPE.model_copy(update={"packing": packing})
    model = LanguageModel(new_model(), None)
    train_rows(model, recipe, rows(), folder, lambda *_: ends.append(time.perf_counter()))
    return ends, [sum(lengths) for lengths in _lengths_of_batches(packed=packing)]


def plain(_folder: Path) -> tuple[list[float], list[int]]:
    """The same model, batches and optimizer in a loop of torch alone."""
    model, ends = new_model(), []
    model.set_attn_implementation(PACKED_ATTENTION)
    optimizer = make_optimizer(model, RECIPE)
    data = Rows(rows())
    for batch in packed_batches():
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
        ends.append(time.perf_counter())
    return ends, [sum(lengths) for lengths in _lengths_of_batches(packed=True)]


def trl(folder: Path) -> tuple[list[float], list[int]]:
    """TRL's SFTTrainer with its defaults; each step counts as the mean of an epoch's."""
    ends: list[float] = []
    given = rows()
    trainer = SFTTrainer(
        model=new_model(),
        args=SFTConfig(str(folder), num_train_epochs=1, use_cpu=True, report_to=[]),
        train_dataset=Dataset.from_list([{"input_ids": row.input_ids.tolist()} for row in given]),
        processing_class=_tokenizer(),
        callbacks=[TrainerProgress(lambda *_: ends.append(time.perf_counter()))],
    )
    trainer.train()
    tokens = sum(len(row.input_ids) for row in given)
    return ends, [tokens // len(ends)] * len(ends)


def _tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {f"<{number}>": number for number in range(_VOCABULARY)}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<0>"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<1>", eos_token="<2>")


def packed_batches() -> TokenBatches:
    """As ours are."""
    return _batches(packed=True)


def _batches(*, packed: bool) -> TokenBatches:
    lengths = [len(row.input_ids) for row in rows()]
    return TokenBatches(lengths, RECIPE.tokens_per_batch, RECIPE.epochs, RECIPE.seed, packed=packed)


def _lengths_of_batches(*, packed: bool) -> list[list[int]]:
    lengths = [len(row.input_ids) for row in rows()]
    return [[lengths[index] for index in batch] for batch in _batches(packed=packed)]


KINDS = {
    "ours": ours,
    "padded": lambda folder: ours(folder, packing=False),
    "plain": plain,
    "trl": trl,
}


def main(kind: str, folder: str) -> None:
    """Useful tokens a second, after the first steps."""
    ends, tokens = KINDS[kind](Path(folder))
    assert len(ends) == len(tokens)
    seconds = ends[-1] - ends[_WARM_UP_STEPS - 1]
    print(json.dumps({"tokens_per_second": sum(tokens[_WARM_UP_STEPS:]) / seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
