"""The records of OpenAI's chat protocol that clients send.

An agent's text may contain lone surrogates, which are not Unicode, so own code checks the texts.
"""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, PlainValidator, WithJsonSchema

from agentworld.records.base import Record


def _content(content: object) -> str:
    """A text, or the texts of its parts joined by line ends."""
    match content:
        case str():
            return content
        case [_, *_]:
            return "\n".join(_part(part) for part in content)
    raise ValueError("a text, or a list of text parts, is required here")


def _part(part: object) -> str:
    match part:
        case {"type": "text", "text": str(text), **rest} if not rest:
            return text
    raise ValueError("a part of type text, and nothing else, is required here")


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
    """A message; an answer of this protocol may be sent back unchanged."""

    role: Literal["system", "developer", "user", "assistant"]
    content: _Content
    refusal: None = None
    tool_calls: None = None
    function_call: None = None
    audio: None = None


class StreamOptions(Record):
    """The options of a streamed answer."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class PinnedFields(Record):
    """Fields that could change the simulator; each must equal the pinned setting or be left out."""

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
    """A conversation that ends with an action; unknown fields are refused."""

    model: str
    messages: tuple[ChatMessage, ...] = Field(min_length=1)
    metadata: dict[str, str] | None = None
    """`episode` names the episode to continue; `initial_state` is the start of a new one."""
    seed: int | None = Field(None, ge=0, lt=2**53)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    # They change no answer.
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    store: bool | None = None
    service_tier: Literal["auto"] | None = None
