"""The request body of OpenAI-compatible servers, and the error for a missing response."""

from collections.abc import Sequence

import httpx
from pydantic import JsonValue

from agentworld.errors import EngineError
from agentworld.records.message import Message

CHAT_PATH = "/v1/chat/completions"

Fields = dict[str, JsonValue]


def chat_body(model: str, messages: Sequence[Message]) -> Fields:
    """The fields that every kind of server accepts."""
    return {
        "model": model,
        "messages": [{"role": m["role"], "content": _encodable(m["content"])} for m in messages],
    }


def no_response(name: str, error: httpx.HTTPError) -> EngineError:
    """The failure of a request that got no response."""
    if isinstance(error, httpx.TimeoutException):
        return EngineError(
            f"{name} did not answer in time ({error}); raise the timeout, or send fewer requests",
            kind="slow",
        )
    return EngineError(f"{name} did not answer ({type(error).__name__}); is it running?")


def _encodable(text: str) -> str:
    """The text as UTF-8 can encode it: joins the halves of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
