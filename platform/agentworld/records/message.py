"""One chat message: what rendering writes and an engine reads."""

from typing import Literal, TypedDict


class Message(TypedDict):
    """As an OpenAI-compatible engine takes it."""

    role: Literal["system", "user", "assistant"]
    content: str
