"""The cost of a response: input and output tokens, and the engine's time."""

from typing import NamedTuple


class Usage(NamedTuple):
    """The usage of one step, with every sample and retry; zero if the engine was not asked."""

    input_tokens: int = 0
    """The tokens of prompts."""
    cached_tokens: int = 0
    """The prompt tokens in the engine's cache, if it reports them."""
    output_tokens: int = 0
    """The tokens of responses, thoughts included."""
    engine_seconds: float = 0.0
    """From a request to its response, without the time in the queue."""

    def plus(self, other: "Usage") -> "Usage":
        """The sum."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            self.engine_seconds + other.engine_seconds,
        )
