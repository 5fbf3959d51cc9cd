"""The records of OpenAI's chat protocol: the answer to a step, whole and as a stream of events.

An observation may contain lone surrogates, which are not Unicode, so it is written in ASCII.
"""

import json
import time
from typing import Annotated, Literal

from pydantic import PlainValidator, WithJsonSchema

from agentworld.records.base import Digest, Record
from agentworld.records.episode import EpisodeStep, StepResult
from agentworld.serving.protocols.chat_model import model_name

_AnyText = Annotated[str, PlainValidator(str), WithJsonSchema({"type": "string"})]
_encode = json.JSONEncoder(separators=(",", ":")).encode


class AnsweredMessage(Record):
    """The observation."""

    role: Literal["assistant"] = "assistant"
    content: _AnyText
    refusal: None = None


class Choice(Record):
    """The only answer of a completion."""

    index: int = 0
    message: AnsweredMessage
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class PromptTokensDetails(Record):
    """The number of cached tokens in the prompts."""

    cached_tokens: int


class CompletionUsage(Record):
    """The usage of the step, including every sample and retry."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails


class Outcome(Record):
    """The result of the step besides its text; OpenAI's clients keep unknown fields."""

    simulator: Digest
    run: str
    episode: str
    step: int
    reward: float | None
    done: bool
    truncated: bool
    mean_logprob: float | None
    agreement: float | None
    low_confidence: bool


class ChatCompletion(Record):
    """The answer; its id names the step."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    system_fingerprint: Digest
    choices: tuple[Choice]
    usage: CompletionUsage
    agentworld: Outcome


def completion(result: StepResult, step: EpisodeStep) -> ChatCompletion:
    """The answer to a step."""
    usage = step.usage
    outcome = {name: value for name, value in result._asdict().items() if name != "observation"}
    return ChatCompletion(
        id=f"chatcmpl-{step.episode}-{step.number}",
        created=int(time.time()),
        model=model_name(result.simulator),
        system_fingerprint=result.simulator,
        choices=(Choice(message=AnsweredMessage(content=result.observation)),),
        usage=CompletionUsage(
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            total_tokens=usage.input_tokens + usage.output_tokens,
            prompt_tokens_details=PromptTokensDetails(cached_tokens=usage.cached_tokens),
        ),
        agentworld=Outcome.model_validate(outcome),
    )


def to_json(fields: dict[str, object]) -> bytes:
    """JSON, in ASCII."""
    return _encode(fields).encode()


def events(answer: ChatCompletion, with_usage: bool) -> bytes:
    """An answer as server-sent events: the role, the text, the end and the usage."""
    common = answer.model_dump(include={"id", "created", "model", "system_fingerprint"})
    chunk = {**common, "object": "chat.completion.chunk", **({"usage": None} if with_usage else {})}
    whole = answer.model_dump(include={"usage", "agentworld"})
    deltas = {"role": "assistant", "content": ""}, {"content": answer.choices[0].message.content}
    chunks = [chunk | {"choices": [_delta(delta)]} for delta in deltas]
    chunks.append(chunk | {"choices": [_delta({}, "stop")], "agentworld": whole["agentworld"]})
    if with_usage:
        chunks.append(chunk | {"choices": [], "usage": whole["usage"]})
    lines = [*map(to_json, chunks), b"[DONE]"]
    return b"".join(b"data: %b\n\n" % line for line in lines)


def _delta(delta: dict[str, str], finish_reason: str | None = None) -> dict[str, object]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
