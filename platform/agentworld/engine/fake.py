"""An engine without a model, for tests and dry runs."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from agentworld.engine.base import Completion
from agentworld.errors import EngineError
from agentworld.records.message import Message
from agentworld.records.simulator import Sampling


class Asked(NamedTuple):
    """One request as the engine got it."""

    messages: list[Message]
    sampling: Sampling
    seed: int | None


class FakeEngine:
    """Says what a function of the messages says, or raises the EngineError that it returns.

    The property that it gives: an answer depends on nothing but the messages, and `asked`
    holds every request in order. A token is a character.
    """

    def __init__(self, answer: Callable[[Sequence[Message]], str | EngineError]) -> None:
        self._answer = answer
        self.asked: list[Asked] = []

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int | None = None
    ) -> Completion:
        """The function's answer to these messages."""
        self.asked.append(Asked(list(messages), sampling, seed))
        answer = self._answer(messages)
        if isinstance(answer, EngineError):
            raise answer
        num_prompt_tokens = sum(len(message["content"]) for message in messages)
        return Completion(answer, num_prompt_tokens, len(answer), "stop")

    async def close(self) -> None:
        """There is nothing to let go of."""
