"""Checks that a chat template shows where the assistant's texts are: the loss counts only them."""

import re
from contextlib import suppress
from pathlib import Path

from transformers import PreTrainedTokenizerFast
from trl.chat_template_utils import get_training_chat_template, has_generation_markers

from agentworld.errors import InputError
from agentworld.records.message import Message
from agentworld.rendering.messages import exchange
from agentworld.train.answer_spans import MARKS, end_of_answer, render
from agentworld.train.chat_template import refuse_failures
from agentworld.train.encode import Conversation, encode

_ANSWERS = ("the first answer", "three words here")
_SYSTEM = Message(role="system", content="the system's text")
_CONVERSATION = [
    _SYSTEM,
    *exchange("a question", _ANSWERS[0]),
    *exchange("another question", _ANSWERS[1]),
]
_OPENING = re.compile(r"({%-?\s*)generation(\s*-?%})")
_CLOSING = re.compile(r"({%-?\s*)endgeneration(\s*-?%})")


def mark_answers(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Prepares a tokenizer's template so that the loss counts only answers, or raises InputError.

    If TRL knows the template's family, TRL's template replaces it: that one writes earlier answers
    in the same form as the last. Marks that cover more than an answer and its end are removed if
    the rendering alone shows where the answers are.
    """
    if not tokenizer.chat_template:
        raise InputError(
            f"{folder} has no chat template; name a model that was tuned for chat, or a template as"
            " model.chat_template in the recipe"
        )
    if not has_generation_markers(tokenizer.chat_template):
        with suppress(ValueError):  # TRL does not know its family
            tokenizer.chat_template = get_training_chat_template(tokenizer)
    with refuse_failures(folder):
        _check_distinct(tokenizer)
        if has_generation_markers(tokenizer.chat_template):
            _take_out_loose_marks(tokenizer)
        marked = _second_answer(tokenizer)
    if _ANSWERS[1] not in marked or _ANSWERS[0] in marked:
        raise InputError(
            f"{folder} has a chat template that marks {marked[:200]!r} where the assistant wrote"
            f" {_ANSWERS[1]!r}; put {MARKS} around each of the assistant's texts"
        )


def _check_distinct(tokenizer: PreTrainedTokenizerFast) -> None:
    """Raises InputError if the template writes answers and questions in the same form."""
    texts = []
    for role in ("assistant", "user"):
        last: list[Message] = [{"role": role, "content": _ANSWERS[0]}]
        with suppress(Exception):  # a template that refuses two questions in a row is distinct
            conversation = [*_CONVERSATION[:2], *last]
            texts.append(tokenizer.apply_chat_template(conversation, tokenize=False))
    if len(texts) == 2 and texts[0] == texts[1]:
        raise InputError(
            "the chat template writes the assistant's messages like the user's, so that no model"
            " could tell them apart; name another as model.chat_template in the recipe"
        )


def _take_out_loose_marks(tokenizer: PreTrainedTokenizerFast) -> None:
    template = tokenizer.chat_template
    if not isinstance(template, str):
        return
    if _second_answer(tokenizer) == _ANSWERS[1] + end_of_answer(tokenizer):
        return
    # Both keep what a hyphen in a tag does to the blanks around it.
    tokenizer.chat_template = _CLOSING.sub(r"\1endif\2", _OPENING.sub(r"\1if true\2", template))
    try:
        list(render(tokenizer, _CONVERSATION, (0, 1)))
    except InputError:
        tokenizer.chat_template = template


def _second_answer(tokenizer: PreTrainedTokenizerFast) -> str:
    """The marked text of the conversation's last answer."""
    (row,) = encode(tokenizer, [Conversation(_CONVERSATION, targets=(1,))])
    return str(tokenizer.decode(row.input_ids[row.is_target]))
