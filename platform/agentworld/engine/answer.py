"""What a server's response means: one whole answer to what was asked, or a typed error.

It is read strictly. A page of a proxy, half of an answer, the answer of another model or to
another request must never pass for an observation.
"""

import math
import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentworld.engine.base import Completion, EngineKind
from agentworld.engine.refusal import error_within, refusal
from agentworld.errors import EngineError, EngineFailure
from agentworld.records.base import first_problem
from agentworld.records.simulator import Sampling

# How each kind of server names the answer to a request; somebody's endpoint as it likes. What is
# left over on a connection, from a request before, reads as the answer to the next one.
_REQUEST_NAMES: dict[EngineKind, str] = {"vllm": "chatcmpl-{}", "transformers-serve": "{}"}

# How each kind of server may lengthen the name of the model that it was asked for: with a
# revision, or with the date of the snapshot that an alias stands for.
_LENGTHENED: dict[EngineKind, re.Pattern[str]] = {
    "vllm": re.compile(""),
    "transformers-serve": re.compile("@main|"),
    "openai": re.compile("-[0-9-]+|"),
}

# An end that is not here is the engine's: it gave up (`abort`), or does not say why it ended.
_MODELS_OWN_END: dict[str, tuple[EngineFailure, str]] = {
    "length": ("cut-off", "raise max_tokens, or ask otherwise"),
    "repetition": ("cut-off", "ask otherwise"),
    "tool_calls": ("unparsable", "ask otherwise"),
    "function_call": ("unparsable", "ask otherwise"),
    "content_filter": ("refused", "its provider holds the rest back; ask otherwise"),
}

# Written by vLLM where it has none.
_NO_LOGPROB = -9999.0


class Question(NamedTuple):
    """What an answer has to be the answer to."""

    request: str
    """The id that it was sent with."""
    kind: EngineKind
    model: str
    sampling: Sampling


class ChatAnswer(NamedTuple):
    """What somebody's model said, as far as its server tells."""

    text: str
    thought: str
    """What it wrote before, where the server tells it apart from the text."""
    is_whole: bool
    """False where the model did not come to its own end."""
    model: str
    """The model that answered, by the server's name; empty where it does not tell."""
    num_prompt_tokens: int | None
    num_cached_tokens: int
    """Those of the prompt that the server still held."""
    num_tokens: int | None
    """Of the thought and the text."""


class _Part(BaseModel):
    model_config = ConfigDict(strict=True)


class _AnswerMessage(_Part):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    """Of vLLM of old, and of others."""


class _Token(_Part):
    logprob: float | None = None


class _Logprobs(_Part):
    content: list[_Token] | None = None


class _ChatChoice(_Part):
    message: _AnswerMessage
    finish_reason: str | None = None


class _Choice(_ChatChoice):
    finish_reason: str
    logprobs: _Logprobs | None = None


_Count = Annotated[int, Field(ge=0, lt=2**31)]


class _PromptDetails(_Part):
    cached_tokens: _Count | None = None


class _Usage(_Part):
    prompt_tokens: _Count
    completion_tokens: _Count
    prompt_tokens_details: _PromptDetails | None = None

    @property
    def cached_tokens(self) -> int:
        """Of the prompt, whatever is told."""
        details = self.prompt_tokens_details
        return min(self.prompt_tokens, (details and details.cached_tokens) or 0)


class _ChatAnswer(_Part):
    model: str = ""
    choices: list[_ChatChoice] = Field(min_length=1)
    usage: _Usage | None = None


class _Answer(_Part):
    id: str | None = None
    model: str
    choices: list[_Choice] = Field(min_length=1, max_length=1)
    usage: _Usage


def read_answer(response: httpx.Response, question: Question) -> Completion:
    """What the model said; raises EngineError where that is nothing, or not all of it."""
    answer = _parse(response, _Answer)
    _check_request(question, answer.id)
    _check_model(question, answer.model)
    choice, usage = answer.choices[0], answer.usage
    try:
        text = _whole_text(choice, usage, question.sampling)
    except EngineError as error:
        error.num_prompt_tokens = usage.prompt_tokens
        raise
    mean_logprob = _mean_logprob(choice.logprobs)
    counts = usage.prompt_tokens, usage.completion_tokens
    return Completion(text, *counts, "stop", mean_logprob, usage.cached_tokens)


def read_chat(response: httpx.Response) -> ChatAnswer:
    """What somebody's model said; raises EngineError where that is nothing.

    An answer that was cut off is one too, and costs as much; `is_whole` says that it is not all.
    """
    answer = _parse(response, _ChatAnswer)
    choice, usage = answer.choices[0], answer.usage
    text = choice.message.content or ""
    is_whole = choice.finish_reason in (None, "stop")
    if is_whole and not text:
        raise _empty(retryable=True)
    return ChatAnswer(
        text=text,
        thought=choice.message.reasoning or choice.message.reasoning_content or "",
        is_whole=is_whole,
        model=answer.model,
        num_prompt_tokens=usage.prompt_tokens if usage else None,
        num_cached_tokens=usage.cached_tokens if usage else 0,
        num_tokens=usage.completion_tokens if usage else None,
    )


def _whole_text(choice: _Choice, usage: _Usage, sampling: Sampling) -> str:
    text, stopped = _cut(choice.message.content or "", sampling.stop)
    if not stopped or choice.finish_reason != "length":
        _check_end(choice.finish_reason, usage, sampling)
    if not text:
        raise _empty(retryable=_is_sampled(sampling))
    return text


def _empty(*, retryable: bool) -> EngineError:
    return EngineError("the engine's answer is empty", kind="unparsable", retryable=retryable)


def _is_sampled(sampling: Sampling) -> bool:
    """Asked again, a greedy engine says the same."""
    return sampling.temperature > 0


_Parsed = TypeVar("_Parsed", bound=_Part)


def _parse(response: httpx.Response, kind: type[_Parsed]) -> _Parsed:
    if response.status_code != httpx.codes.OK:
        raise refusal(response)
    if failure := error_within(response.content):
        raise failure
    try:
        return kind.model_validate_json(response.content)
    except ValidationError as error:
        raise EngineError(f"the engine's answer is none: {first_problem(error)}") from error


def _check_request(question: Question, answer_id: str | None) -> None:
    name = _REQUEST_NAMES.get(question.kind)
    if name is not None and answer_id != name.format(question.request):
        raise EngineError(
            f"the engine answers request {answer_id!r} where {question.request!r} was asked; ask"
            " again"
        )


def _check_model(question: Question, answer_model: str) -> None:
    model = question.model
    name, rest = answer_model[: len(model)], answer_model[len(model) :]
    if name != model or not _LENGTHENED[question.kind].fullmatch(rest):
        raise EngineError(
            f"the model {answer_model!r} answers where {model!r} was asked; name it as its server"
            " does",
            kind="refused",
            retryable=False,
        )


def _cut(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """The text before the first stop string, and whether there was one."""
    positions = [position for stop in stops if (position := text.find(stop)) >= 0]
    return (text[: min(positions)], True) if positions else (text, False)


def _check_end(reason: str, usage: _Usage, sampling: Sampling) -> None:
    if reason == "stop":
        return
    if reason not in _MODELS_OWN_END:
        raise EngineError(f"the engine ended its answer by {reason!r}; ask again")
    num_tokens, limit = usage.completion_tokens, sampling.max_tokens
    if reason == "length" and num_tokens < limit:
        raise EngineError(
            f"the answer was ended after {num_tokens} of {limit} tokens, for a prompt of"
            f" {usage.prompt_tokens} leaves no room for more; end the episode and begin another",
            kind="context",
            retryable=False,
        )
    kind, advice = _MODELS_OWN_END[reason]
    raise EngineError(
        f"the answer was ended by {reason!r} after {num_tokens} tokens; {advice}",
        kind=kind,
        retryable=_is_sampled(sampling),
    )


def _mean_logprob(logprobs: _Logprobs | None) -> float | None:
    tokens = (logprobs and logprobs.content) or []
    values = [
        token.logprob
        for token in tokens
        if token.logprob is not None and token.logprob > _NO_LOGPROB
    ]
    if not values or len(values) < len(tokens):
        return None
    mean = sum(values) / len(values)
    return mean if math.isfinite(mean) else None
