"""The records of OpenAI's chat protocol: the answer to a step, whole and as a stream of events.

What a world says may be no Unicode (a lone surrogate): it is checked by hand and written in ASCII.
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
    """The one answer there is."""

    index: int = 0
    message: AnsweredMessage
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class PromptTokensDetails(Record):
    """What the prompts were made of."""

    cached_tokens: int


class CompletionUsage(Record):
    """Of the step, with every sample and every retry that led to it."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails


class Outcome(Record):
    """What the step means beyond its text; OpenAI's clients keep what they do not know."""

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
    """An answer as server-sent events: who speaks, what is said, its end, what it cost."""
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
