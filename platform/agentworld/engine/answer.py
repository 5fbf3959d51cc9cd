"""Parses a server's response: a complete answer to the request, or a typed error.

The parser is strict: an error page of a proxy, a truncated answer, or the answer of another model
or to another request must never become an observation.
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

# How each kind of server derives the response's id from the request's; a third-party endpoint may
# use any. A leftover response on a connection would otherwise be read as the answer to the next
# request.
_REQUEST_NAMES: dict[EngineKind, str] = {"vllm": "chatcmpl-{}", "transformers-serve": "{}"}

# How each kind of server may extend the model's name in its answer: by a revision, or by the date
# of the snapshot that an alias names.
_LENGTHENED: dict[EngineKind, re.Pattern[str]] = {
    "vllm": re.compile(""),
    "transformers-serve": re.compile("@main|"),
    "openai": re.compile("-[0-9-]+|"),
}

# Any other finish reason is the engine's failure: it gave up (`abort`), or gave no reason.
_MODELS_OWN_END: dict[str, tuple[EngineFailure, str]] = {
    "length": ("cut-off", "raise max_tokens, or change the prompt"),
    "repetition": ("cut-off", "change the prompt"),
    "tool_calls": ("unparsable", "change the prompt"),
    "function_call": ("unparsable", "change the prompt"),
    "content_filter": ("refused", "its provider filtered the rest; change the prompt"),
}

# vLLM writes this if it has no log-probability.
_NO_LOGPROB = -9999.0


class Question(NamedTuple):
    """The request that an answer must belong to."""

    request: str
    """The request's id."""
    kind: EngineKind
    model: str
    sampling: Sampling


class ChatAnswer(NamedTuple):
    """The answer of a third-party model, with the fields that its server sends."""

    text: str
    thought: str
    """The reasoning, if the server returns it separately from the text."""
    is_whole: bool
    """False if the answer has another finish reason than `stop`, such as a truncated one."""
    model: str
    """The model's name in the answer; empty if the server sends none."""
    num_prompt_tokens: int | None
    num_cached_tokens: int
    """Tokens of the prompt that were in the server's cache."""
    num_tokens: int | None
    """Tokens of the reasoning and the text."""


class _Part(BaseModel):
    model_config = ConfigDict(strict=True)


class _AnswerMessage(_Part):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    """The reasoning, from older versions of vLLM and from other servers."""


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
        """Cached tokens of the prompt; servers send them in different fields."""
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
    """The model's answer; raises EngineError if there is none, or only a part of it."""
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
    """The answer of a third-party model; raises EngineError if there is none.

    A truncated answer is returned too, because it costs as much; `is_whole` is then false.
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
    """Whether answers are random; a greedy engine repeats its answer."""
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
        raise EngineError(f"the engine's response is invalid: {first_problem(error)}") from error


def _check_request(question: Question, answer_id: str | None) -> None:
    name = _REQUEST_NAMES.get(question.kind)
    if name is not None and answer_id != name.format(question.request):
        raise EngineError(
            f"the engine answered request {answer_id!r} instead of {question.request!r}; try again"
        )


def _check_model(question: Question, answer_model: str) -> None:
    model = question.model
    name, rest = answer_model[: len(model)], answer_model[len(model) :]
    if name != model or not _LENGTHENED[question.kind].fullmatch(rest):
        raise EngineError(
            f"the model {answer_model!r} answered instead of {model!r}; use the name that its"
            " server uses",
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
        raise EngineError(f"the engine ended its answer with {reason!r}; try again")
    num_tokens, limit = usage.completion_tokens, sampling.max_tokens
    if reason == "length" and num_tokens < limit:
        raise EngineError(
            f"the answer was truncated after {num_tokens} of {limit} tokens, because its prompt has"
            f" {usage.prompt_tokens}; end the episode and begin another",
            kind="context",
            retryable=False,
        )
    kind, advice = _MODELS_OWN_END[reason]
    raise EngineError(
        f"the answer ended with {reason!r} after {num_tokens} tokens; {advice}",
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
