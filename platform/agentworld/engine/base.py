"""What an engine is: chat messages in, text out, or a typed error."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from agentworld.errors import EngineFailure
from agentworld.records.message import Message
from agentworld.records.simulator import Sampling

EngineKind = Literal["transformers-serve", "vllm", "openai"]
"""Programs with an OpenAI-compatible API; `openai` is one that somebody else runs."""


BROKEN: tuple[EngineFailure, ...] = ("engine", "slow")
"""Failures of the server; the others are about a request, or about the model."""


class CompletionRequest(NamedTuple):
    """What an engine is asked."""

    messages: Sequence[Message]
    sampling: Sampling
    seed: int | None = None
    affinity: str = ""
    """Names what the messages belong to, an episode: the same replica answers equal names while it
    lives, because it holds their prefix.
    """


class Completion(NamedTuple):
    """What an engine said."""

    text: str
    num_prompt_tokens: int
    num_tokens: int
    finish_reason: str
    """`stop`: an answer that was cut off is an error."""
    mean_logprob: float | None = None
    """The mean log-probability of the answer's tokens, where the engine tells it; finite."""
    num_cached_tokens: int = 0
    """Those of the prompt that the engine still held, where it tells."""
    queued_seconds: float = 0.0
    """How long the request waited for its turn."""


class Engine(Protocol):
    """Raises EngineError where it cannot answer; never makes an answer up."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """The text that follows the messages."""
        ...

    async def close(self) -> None:
        """Lets go of connections."""
        ...
