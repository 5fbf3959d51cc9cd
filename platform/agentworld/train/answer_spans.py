"""Finds the assistant's answers in a rendered conversation.

A template with generation marks states the places. For any other template, the messages before an
answer are rendered with the generation prompt, as an engine does. In the whole conversation the
answer follows this prompt directly, and ends with the template's end of an answer.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from transformers import PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import render_jinja_template
from trl.chat_template_utils import has_generation_markers

from agentworld.errors import InputError
from agentworld.records.message import Message

MARKS = "{% generation %} and {% endgeneration %}"
"""The marks that a template can have around answers."""

_THOUGHT_END = "</think>"


class RenderedConversation(NamedTuple):
    """A conversation as a model reads it."""

    text: str
    answers: tuple[tuple[int, int], ...]
    """For each target answer, its first character and the character after its end token."""


def render(
    tokenizer: PreTrainedTokenizerFast, messages: Sequence[Message], targets: Sequence[int]
) -> Iterator[RenderedConversation]:
    """Renders a conversation and finds the target answers, numbered among the assistant's.

    Some templates write the last answer otherwise than earlier ones, for example with its thought.
    With them the conversation is rendered once for each target, up to the target, as an engine
    sees it. Raises InputError if an answer does not directly follow its prompt.
    """
    if has_generation_markers(tokenizer.chat_template):
        yield _render_marked(tokenizer, messages, targets)
        return
    places = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    places = [places[target] for target in targets]
    end = end_of_answer(tokenizer)
    text = _render(tokenizer, messages)
    spans = [_span(tokenizer, messages, place, text, end) for place in places]
    if None not in spans:
        yield RenderedConversation(text, tuple(span for span in spans if span))
        return
    for place in places:
        text = _render(tokenizer, messages[: place + 1])
        span = _span(tokenizer, messages, place, text, end)
        if span is None:
            raise InputError(
                f"the chat template writes message {place}, an answer, elsewhere than right after"
                f" its prompt; put {MARKS} around the assistant's text in it, or name another as"
                " model.chat_template in the recipe"
            )
        yield RenderedConversation(text, (span,))


def _render_marked(
    tokenizer: PreTrainedTokenizerFast, messages: Sequence[Message], targets: Sequence[int]
) -> RenderedConversation:
    """Joins marked spans that touch, because they are one answer, such as a thought and its end."""
    (text,), (marks,) = render_jinja_template(
        [list(messages)],
        chat_template=tokenizer.get_chat_template(),
        return_assistant_tokens_mask=True,
        **tokenizer.special_tokens_map,
    )
    answers: list[tuple[int, int]] = []
    for start, end in marks:
        follows = answers and answers[-1][1] == start
        answers.append((answers.pop()[0] if follows else start, end))
    return RenderedConversation(
        text, tuple(span for place, span in enumerate(answers) if place in targets)
    )


def end_of_answer(tokenizer: PreTrainedTokenizerFast) -> str:
    """The text that a template writes after an answer, up to the first special token."""
    system, user = Message(role="system", content="system"), Message(role="user", content="user")
    answer = Message(role="assistant", content="answer")
    end = _render(tokenizer, [system, user, answer]).rpartition("answer")[2]
    tokens = "|".join(map(re.escape, tokenizer.all_special_tokens))
    first = re.search(tokens, end) if tokens else None
    return end[: first.end()] if first else end


def _span(
    tokenizer: PreTrainedTokenizerFast,
    messages: Sequence[Message],
    place: int,
    text: str,
    end: str,
) -> tuple[int, int] | None:
    """The span of the answer at a place; null if it does not directly follow its prompt."""
    content = messages[place]["content"]
    # `enable_thinking` as for an engine: if it is false, templates of models that think end the
    # prompt with an empty thought.
    prompt = _render(
        tokenizer,
        messages[:place],
        add_generation_prompt=True,
        enable_thinking=_THOUGHT_END in content,
    )
    rest = text[len(prompt) :]
    answer = next((form for form in _forms(content) if rest.startswith(form + end)), None)
    if answer is None or not text.startswith(prompt):
        return None
    return len(prompt), len(prompt) + len(answer + end)


def _forms(content: str) -> Iterator[str]:
    """The forms in which templates write a text: unchanged, stripped, or with its thought apart."""
    yield content
    yield content.lstrip("\n")
    yield content.lstrip()
    yield content.rstrip()
    yield content.strip()
    if _THOUGHT_END in content:
        thought, _, answer = content.rpartition(_THOUGHT_END)
        thought = thought.rpartition("<think>")[2].strip("\n")
        yield f"<think>\n{thought}\n{_THOUGHT_END}\n\n{answer.lstrip(chr(10))}"


def _render(
    tokenizer: PreTrainedTokenizerFast, messages: Sequence[Message], **variables: bool
) -> str:
    return str(tokenizer.apply_chat_template(list(messages), tokenize=False, **variables))
