"""What an engine is: chat messages in, text out, or a typed error."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from agentworld.records.simulator import Sampling
from agentworld.rendering.messages import Message


class Completion(NamedTuple):
    """What an engine said."""

    text: str
    num_prompt_tokens: int
    num_tokens: int
    finish_reason: str
    """`stop`, or `length` where it was cut off."""


class Engine(Protocol):
    """Raises EngineError where it cannot answer; never makes an answer up."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        """The text that follows these messages."""
        ...

    async def close(self) -> None:
        """Lets go of connections."""
        ...
