"""The protocol of engines: chat messages in, text out, or a typed error."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from agentworld.errors import EngineFailure
from agentworld.records.message import Message
from agentworld.records.simulator import Sampling

EngineKind = Literal["transformers-serve", "vllm", "openai"]
"""Programs with an OpenAI-compatible API; `openai` is a third-party endpoint."""


BROKEN: tuple[EngineFailure, ...] = ("engine", "slow")
"""Failures of the server; other kinds are about the request or the model."""


class CompletionRequest(NamedTuple):
    """A request to an engine."""

    messages: Sequence[Message]
    sampling: Sampling
    seed: int | None = None
    affinity: str = ""
    """A key for requests with a common prefix, such as those of an episode.

    While a replica is available, it gets all requests with the same key, because it has their
    prefix cached.
    """


class Completion(NamedTuple):
    """An engine's answer."""

    text: str
    num_prompt_tokens: int
    num_tokens: int
    finish_reason: str
    """Always `stop`: a truncated answer is an error."""
    mean_logprob: float | None = None
    """The mean log-probability of the answer's tokens, if the engine reports it; finite."""
    num_cached_tokens: int = 0
    """Cached tokens of the prompt, if the engine reports them."""
    queued_seconds: float = 0.0
    """Seconds that the request waited in the queue."""


class Engine(Protocol):
    """Raises EngineError if it has no answer; never invents one."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """The text that follows the messages."""
        ...

    async def close(self) -> None:
        """Closes the connections."""
        ...
