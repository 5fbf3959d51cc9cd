"""Where the assistant's answers stand in a conversation, for templates without marks of their own.

A template is asked to render what comes before an answer, with the prompt for one; in the whole
conversation the answer stands right after that, and ends with what ends an answer.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from transformers import PreTrainedTokenizerFast

from agentworld.errors import InputError
from agentworld.records.message import Message

MARKS = "{% generation %} and {% endgeneration %}"
"""What a template has around answers that says where they are."""


class Rendered(NamedTuple):
    """A conversation as a model reads it."""

    text: str
    answers: list[tuple[int, int]]
    """The first character of each of the assistant's answers, and the one after its end token."""


def render(tokenizer: PreTrainedTokenizerFast, messages: Sequence[Message]) -> Rendered:
    """Raises InputError where an answer is not where its prompt ends."""
    text = _render(tokenizer, messages, prompt=False)
    end = _end_of_answer(tokenizer)
    return Rendered(text, list(_answers(tokenizer, messages, text, end)))


def _answers(
    tokenizer: PreTrainedTokenizerFast, messages: Sequence[Message], text: str, end: str
) -> Iterator[tuple[int, int]]:
    for number, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        prompt = _render(tokenizer, messages[:number], prompt=True)
        content = message["content"]
        # Templates trim what they are given, or do not.
        forms = [each + end for each in (content, content.strip())]
        rest = text[len(prompt) :]
        answer = next((each for each in forms if rest.startswith(each)), None)
        if answer is None or not text.startswith(prompt):
            raise InputError(
                f"the chat template writes message {number}, an answer, elsewhere than right after"
                f" its prompt; put {MARKS} around the assistant's text in it"
            )
        yield len(prompt), len(prompt) + len(answer)


def _end_of_answer(tokenizer: PreTrainedTokenizerFast) -> str:
    """What a template writes after an answer, to the first special token."""
    question = [Message(role="user", content="question")]
    answer = Message(role="assistant", content="answer")
    text = _render(tokenizer, [*question, answer], prompt=False)
    end = text.rpartition("answer")[2]
    tokens = "|".join(map(re.escape, tokenizer.all_special_tokens))
    first = re.search(tokens, end) if tokens else None
    return end[: first.end()] if first else end


def _render(
    tokenizer: PreTrainedTokenizerFast, messages: Sequence[Message], *, prompt: bool
) -> str:
    text = tokenizer.apply_chat_template(
        list(messages), tokenize=False, add_generation_prompt=prompt
    )
    return str(text)
