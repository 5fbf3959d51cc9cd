"""The records of OpenAI's chat protocol: what its clients send.

What an agent says may be no Unicode (a lone surrogate), so that texts are checked by hand.
"""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, PlainValidator, WithJsonSchema

from agentworld.records.base import Record


def _content(content: object) -> str:
    """A text, or the texts of its parts with a line for each."""
    match content:
        case str():
            return content
        case [_, *_]:
            return "\n".join(_part(part) for part in content)
    raise ValueError("a text, or a list of text parts, is wanted here")


def _part(part: object) -> str:
    match part:
        case {"type": "text", "text": str(text), **rest} if not rest:
            return text
    raise ValueError("a part of type text, and nothing else, is wanted here")


_TEXT = {"type": "string"}
_PART = {
    "type": "object",
    "properties": {"type": {"const": "text"}, "text": _TEXT},
    "required": ["type", "text"],
    "additionalProperties": False,
}
_PARTS = {"type": "array", "items": _PART, "minItems": 1}
_Content = Annotated[str, PlainValidator(_content), WithJsonSchema({"anyOf": [_TEXT, _PARTS]})]


class ChatMessage(Record):
    """What somebody said; an answer of this protocol may be sent back as it came."""

    role: Literal["system", "developer", "user", "assistant"]
    content: _Content
    refusal: None = None
    tool_calls: None = None
    function_call: None = None
    audio: None = None


class StreamOptions(Record):
    """How an answer is cut into events."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class PinnedFields(Record):
    """What would change the simulator: each may say what holds anyway, and is refused otherwise."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stop: str | tuple[str, ...] | None = None
    n: int | None = None
    tools: tuple[JsonValue, ...] | None = None
    tool_choice: JsonValue = None
    functions: tuple[JsonValue, ...] | None = None
    function_call: JsonValue = None
    response_format: JsonValue = None
    modalities: tuple[str, ...] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[str, float] | None = None


class ChatRequest(PinnedFields):
    """A conversation that ends with an action; fields that are not named here are refused."""

    model: str
    messages: tuple[ChatMessage, ...] = Field(min_length=1)
    metadata: dict[str, str] | None = None
    """`episode` names the one that goes on, `initial_state` is where a new one starts."""
    seed: int | None = Field(None, ge=0, lt=2**53)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    # They change no answer.
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    store: bool | None = None
    service_tier: Literal["auto"] | None = None
