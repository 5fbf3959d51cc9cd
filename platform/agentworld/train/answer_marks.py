"""Whether the loss can count what the assistant wrote, and nothing else, with a chat template."""

from contextlib import suppress
from pathlib import Path

from transformers import PreTrainedTokenizerFast
from trl.chat_template_utils import get_training_chat_template, has_generation_markers

from agentworld.errors import InputError
from agentworld.records.message import Message
from agentworld.rendering.messages import exchange
from agentworld.train.answer_spans import MARKS
from agentworld.train.chat_template import refused
from agentworld.train.encode import Conversation, encode

_ANSWERS = ("notes.txt", "three words here")
_CONVERSATION = [
    Message(role="system", content="You simulate a Linux shell."),
    *exchange("ls", _ANSWERS[0]),
    *exchange("cat it", _ANSWERS[1]),
]


def mark_answers(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Makes sure that the loss can count the answers alone; raises InputError where it cannot.

    A template without marks gets those that TRL has for its family. For any other, its own
    rendering says where the answers are.
    """
    if not tokenizer.chat_template:
        raise InputError(f"{folder} has no chat template; name a model that was tuned for chat")
    if not has_generation_markers(tokenizer.chat_template):
        with suppress(ValueError):  # of no family that TRL knows
            tokenizer.chat_template = get_training_chat_template(tokenizer)
    marked = _second_answer(tokenizer, folder)
    if _ANSWERS[1] not in marked or _ANSWERS[0] in marked:
        raise InputError(
            f"{folder} has a chat template that marks {marked[:200]!r} where the assistant wrote"
            f" {_ANSWERS[1]!r}; put {MARKS} around each of the assistant's texts"
        )


def _second_answer(tokenizer: PreTrainedTokenizerFast, folder: Path) -> str:
    """What is marked of the conversation's last answer."""
    with refused(folder):
        (row,) = encode(tokenizer, [Conversation(_CONVERSATION, targets=(1,))])
        return str(tokenizer.decode(row.input_ids[row.is_target]))
