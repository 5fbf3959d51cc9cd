"""A chat template that marks what the assistant wrote, which is what a loss counts.

TRL has one for each family of models that it knows. Any other has to bring its own marks.
"""

from pathlib import Path

from transformers import PreTrainedTokenizerFast
from trl.chat_template_utils import get_training_chat_template, has_generation_markers

from agentworld.errors import InputError
from agentworld.records.message import Message
from agentworld.rendering.messages import exchange
from agentworld.train.chat_template import refused
from agentworld.train.encode import Conversation, encode

_MARKS = "{% generation %} and {% endgeneration %}"
_ANSWERS = ("notes.txt", "three words here")
_CONVERSATION = [
    Message(role="system", content="You simulate a Linux shell."),
    *exchange("ls", _ANSWERS[0]),
    *exchange("cat it", _ANSWERS[1]),
]


def mark_answers(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Gives the tokenizer a template with marks; raises InputError where there is none for it."""
    if not tokenizer.chat_template:
        raise InputError(f"{folder} has no chat template; name a model that was tuned for chat")
    if not has_generation_markers(tokenizer.chat_template):
        try:
            tokenizer.chat_template = get_training_chat_template(tokenizer)
        except ValueError as error:
            raise InputError(
                f"{folder} has a chat template that does not mark what the assistant wrote, and TRL"
                f" knows no other for it; put {_MARKS} around the assistant's text in it"
            ) from error
    marked = _second_answer(tokenizer, folder)
    if _ANSWERS[1] not in marked or _ANSWERS[0] in marked:
        raise InputError(
            f"{folder} has a chat template that marks {marked[:200]!r} where the assistant wrote"
            f" {_ANSWERS[1]!r}; put {_MARKS} around each of the assistant's texts"
        )


def _second_answer(tokenizer: PreTrainedTokenizerFast, folder: Path) -> str:
    """What is marked of the conversation's last answer."""
    with refused(folder):
        (row,) = encode(tokenizer, [Conversation(_CONVERSATION, targets=(1,))])
        return str(tokenizer.decode(row.input_ids[row.is_target]))
