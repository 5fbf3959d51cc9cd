"""One chat message: what rendering writes and an engine reads."""

from typing import Literal, TypedDict


class Message(TypedDict):
    """A message of an OpenAI-compatible API."""

    role: Literal["system", "user", "assistant"]
    content: str
