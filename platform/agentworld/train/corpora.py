"""Mixes documents of corpora with the rows of episodes, by weight.

The chosen documents depend on the recipe's seed, the corpus and the number of tokens of its weight.
A document occurs at most once in an epoch.
"""

import heapq
import math
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from transformers import PreTrainedTokenizerFast

from agentworld.errors import InputError
from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.corpus import Corpus, CorpusUse, Document
from agentworld.records.message import Message
from agentworld.train.encode import Conversation, Row, encode, fit


class Mixture(NamedTuple):
    """The rows of a stage."""

    rows: list[Row]
    corpora: dict[str, CorpusUse] = {}
    figures: dict[str, float] = {}
    """The number of truncated episodes, for the training's record."""


class _Picked(NamedTuple):
    """The chosen documents of a corpus."""

    num_documents: int
    rows: list[Row]


def mix(
    tokenizer: PreTrainedTokenizerFast,
    recipe: NextTokenRecipe,
    episodes: list[Row],
    corpora: Mapping[str, Corpus],
) -> Mixture:
    """The rows of episodes, then those of each corpus; raises InputError if a corpus has too little
    text for its weight.
    """
    encoder = _Encoder(tokenizer, recipe.sequence_tokens or recipe.tokens_per_batch)
    num_tokens = _num_tokens(episodes)
    picked = {
        name: _pick(name, recipe.seed, corpus, encoder, num_tokens)
        for name, corpus in corpora.items()
    }
    rows = [*episodes, *(row for sample in picked.values() for row in sample.rows)]
    return Mixture(
        rows,
        {
            name: CorpusUse(
                content=corpora[name].content,
                num_documents=sample.num_documents,
                num_tokens=_num_tokens(sample.rows),
                share=_num_tokens(sample.rows) / _num_tokens(rows),
                target_share=_num_targets(sample.rows) / _num_targets(rows),
            )
            for name, sample in picked.items()
        },
    )


class _Encoder:
    """Encodes documents as rows of at most so many tokens."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, most_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._most_tokens = most_tokens

    def rows_of(self, document: Document) -> list[Row]:
        """Empty if the document has no token to predict."""
        rows = self._text(document) if document.prompt is None else self._answer(document)
        return [row for row in rows if row.is_target[1:].any()]

    def _text(self, document: Document) -> list[Row]:
        """Every token and the end of the text are targets; a long text becomes several rows."""
        ids = self._tokenizer(document.text, add_special_tokens=False, verbose=False)["input_ids"]
        end = self._tokenizer.eos_token_id
        tokens = np.array(ids if end is None else [*ids, end], dtype=np.int32)
        pieces = range(0, len(tokens), self._most_tokens)
        parts = [tokens[start : start + self._most_tokens] for start in pieces] if ids else []
        return [Row(part, np.ones(len(part), dtype=np.bool_)) for part in parts]

    def _answer(self, document: Document) -> list[Row]:
        """The completion is the target, as the answer of a single turn."""
        messages: list[Message] = [
            {"role": "user", "content": document.prompt or ""},
            {"role": "assistant", "content": document.text},
        ]
        return fit(encode(self._tokenizer, [Conversation(messages, (0,))]), self._most_tokens)


def _pick(
    name: str, seed: int, corpus: Corpus, encoder: _Encoder, num_episode_tokens: int
) -> _Picked:
    """Documents in a random order, until they have the tokens of the weight.

    One pass keeps only these documents in memory, in a heap with the last one first, and encodes
    few others.
    """
    budget = corpus.weight * num_episode_tokens
    rng = random.Random(f"{seed} {name}")
    heap: list[tuple[float, int, list[Row]]] = []
    num_tokens = 0
    for number, document in enumerate(corpus.read()):
        place = -rng.random()
        if heap and num_tokens >= budget and place < heap[0][0]:
            continue
        heapq.heappush(heap, (place, number, rows := encoder.rows_of(document)))
        num_tokens += _num_tokens(rows)
        while heap and num_tokens - _num_tokens(heap[0][2]) >= budget:
            num_tokens -= _num_tokens(heapq.heappop(heap)[2])
    if num_tokens < budget:
        most = math.floor(10_000 * num_tokens / num_episode_tokens) / 10_000
        raise InputError(
            f"the corpus {name} has {num_tokens:,} tokens, and its weight {corpus.weight:g} asks"
            f" for {math.ceil(budget):,}; set cpt.corpora.{name}.weight to at most {most:g}, or add"
            " text"
        )
    in_order = sorted((number, rows) for _, number, rows in heap if rows)
    return _Picked(len(in_order), [row for _, rows in in_order for row in rows])


def _num_tokens(rows: Sequence[Row]) -> int:
    return sum(len(row.input_ids) for row in rows)


def _num_targets(rows: Sequence[Row]) -> int:
    return sum(int(row.is_target[1:].sum()) for row in rows)
