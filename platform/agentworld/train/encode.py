"""Encodes samples as token rows: the tokens that a model reads, and those that it must predict."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding
from transformers import PreTrainedTokenizerFast

from agentworld.errors import InputError
from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.message import Message
from agentworld.records.sample import Sample
from agentworld.records.traces import Trace
from agentworld.rendering.messages import with_thought, world_messages
from agentworld.train.answer_spans import RenderedConversation, render

_ROWS_AT_ONCE = 1_000


class Row(NamedTuple):
    """One sequence: its tokens, and a mask of those that the loss counts."""

    input_ids: npt.NDArray[np.int32]
    is_target: npt.NDArray[np.bool_]


class Conversation(NamedTuple):
    """Chat messages, and which of the assistant's (by their order) must be predicted."""

    messages: list[Message]
    targets: tuple[int, ...]


def whole_episode(sample: Sample) -> Conversation:
    """All turns of a sample at once; its target turns must be predicted."""
    *earlier, last = sample.turns
    messages = world_messages(sample.prompt, earlier, last.action)
    messages.append({"role": "assistant", "content": last.observation})
    return Conversation(messages, sample.targets)


def split_turns(sample: Sample, thoughts: Sequence[str]) -> Iterator[Conversation]:
    """A conversation for each target turn, whose answer begins with a thought."""
    for target in sample.targets:
        turn = sample.turns[target]
        messages = world_messages(sample.prompt, sample.turns[:target], turn.action)
        answer = with_thought(thoughts[target], turn.observation)
        messages.append({"role": "assistant", "content": answer})
        yield Conversation(messages, (target,))


def traced_turns(samples: Iterable[Sample], traces: Iterable[Trace]) -> Iterator[Conversation]:
    """A conversation for each trace: the recorded history, then its thought and observation.

    Raises InputError for a trace of another sample.
    """
    by_trajectory = {sample.trajectory: sample for sample in samples}
    for trace in traces:
        sample = by_trajectory.get(trace.trajectory)
        if sample is None or trace.turn >= len(sample.turns):
            raise InputError(
                f"turn {trace.turn} of {trace.trajectory} has a trace and is not in the pool; make"
                " the traces again"
            )
        turns = sample.turns
        messages = world_messages(sample.prompt, turns[: trace.turn], turns[trace.turn].action)
        answer = with_thought(trace.thought, trace.observation)
        messages.append({"role": "assistant", "content": answer})
        yield Conversation(messages, (trace.turn,))


def fit(rows: Iterable[Row], most_tokens: int | None) -> list[Row]:
    """Truncates rows to a length; leaves out rows without a remaining target."""
    cut = [Row(row.input_ids[:most_tokens], row.is_target[:most_tokens]) for row in rows]
    return [row for row in cut if most_tokens is None or row.is_target.any()]


def fit_rows(recipe: NextTokenRecipe, rows: Sequence[Row]) -> list[Row]:
    """The rows that a stage trains on; raises InputError if there are none."""
    fitted = fit(rows, recipe.sequence_tokens)
    if not fitted:
        raise InputError(
            f"{recipe.stage} has nothing to learn: of {len(rows)} samples none has a token to"
            f" predict within sequence_tokens ({recipe.sequence_tokens}); raise it, or add data"
        )
    return fitted


def truncation(rows: Sequence[Row], most_tokens: int | None) -> dict[str, float]:
    """How many rows `fit` truncates, and how many of these it leaves out."""
    longer = [row for row in rows if most_tokens is not None and len(row.input_ids) > most_tokens]
    num_left_out = len(longer) - len(fit(longer, most_tokens))
    return {"truncated_samples": len(longer), "left_out_samples": num_left_out}


def encode_texts(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str]) -> Iterator[Row]:
    """Rows of plain text, in which every token must be predicted."""
    for ids in tokenizer(list(texts), add_special_tokens=False)["input_ids"]:
        yield Row(np.array(ids, dtype=np.int32), np.ones(len(ids), dtype=np.bool_))


def encode(
    tokenizer: PreTrainedTokenizerFast, conversations: Iterable[Conversation]
) -> Iterator[Row]:
    """Rows for training; the assistant's end token belongs to its turn.

    Raises InputError if the template has no marks and its rendering does not show the answers.
    """
    remaining = chain.from_iterable(
        render(tokenizer, conversation.messages, conversation.targets)
        for conversation in conversations
    )
    while batch := list(islice(remaining, _ROWS_AT_ONCE)):
        texts = [rendered.text for rendered in batch]
        batch_encoding = tokenizer(texts, add_special_tokens=False, verbose=False)
        assert batch_encoding.encodings is not None  # the tokenizer is a fast one
        for rendered, encoding in zip(batch, batch_encoding.encodings, strict=True):
            yield _row(tokenizer, rendered, encoding)


def _row(
    tokenizer: PreTrainedTokenizerFast, rendered: RenderedConversation, encoding: Encoding
) -> Row:
    """A token that is only partly in an answer is no target, because an engine never writes it."""
    offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
    is_target = np.zeros(len(offsets), dtype=np.bool_)
    is_cut = False
    for start, end in rendered.answers:
        is_target |= (offsets[:, 0] >= start) & (offsets[:, 1] <= end)
        is_cut |= any(
            ((offsets[:, 0] < boundary) & (offsets[:, 1] > boundary)).any()
            for boundary in (start, end)
        )
    row = Row(np.array(encoding.ids, dtype=np.int32), is_target)
    return (_row_of_pieces(tokenizer, rendered) or row) if is_cut else row


def _row_of_pieces(
    tokenizer: PreTrainedTokenizerFast, rendered: RenderedConversation
) -> Row | None:
    """Encodes prompts and answers separately, as an engine does, if one token would belong to both.

    Null for a tokenizer whose tokens of the parts differ from those of the whole.
    """
    ends = [0, *(boundary for span in rendered.answers for boundary in span), len(rendered.text)]
    pieces = [rendered.text[start:end] for start, end in pairwise(ends)]
    ids = tokenizer(pieces, add_special_tokens=False, verbose=False)["input_ids"]
    if "".join(tokenizer.batch_decode(ids)) != rendered.text:
        return None
    is_target = [place % 2 == 1 for place, piece in enumerate(ids) for _ in piece]
    return Row(
        np.array([token for piece in ids for token in piece], dtype=np.int32), np.array(is_target)
    )
