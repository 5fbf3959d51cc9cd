"""What a predictor reaches without learning; a world model must be better than both.

They are engines, so that they are asked and scored exactly as a model is.
"""

from agentworld.engine.base import Completion, CompletionRequest


class CopyPrevious:
    """Says what was shown last; at an episode's start it has nothing to say."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """The last observation again."""
        observations = [
            message["content"] for message in request.messages if message["role"] == "assistant"
        ]
        return Completion(observations[-1] if observations else "", 0, 0, "stop")

    async def close(self) -> None:
        """There is nothing to let go of."""
