"""What an answer cost: the tokens that an engine read and wrote, and its time."""

from typing import NamedTuple


class Usage(NamedTuple):
    """Of one step, with every sample and every retry that led to it; zero where none was asked."""

    input_tokens: int = 0
    """Prompts."""
    cached_tokens: int = 0
    """Those of the prompts that the engine still held, where it tells."""
    output_tokens: int = 0
    """Answers, thoughts included."""
    engine_seconds: float = 0.0
    """From a request to its answer, without the time in the queue."""

    def plus(self, other: "Usage") -> "Usage":
        """Both together."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            self.engine_seconds + other.engine_seconds,
        )
