"""An engine without a model, for tests and dry runs."""

import inspect
from collections.abc import Awaitable, Callable, Sequence

from agentworld.engine.base import Completion, CompletionRequest
from agentworld.errors import EngineError
from agentworld.records.message import Message

Answer = str | Completion | EngineError


class FakeEngine:
    """Says what a function of the messages says: a text, a whole Completion, or an EngineError
    to raise. A function that is a coroutine takes its time.

    The property that it gives: an answer depends on nothing but the messages, and `requests`
    holds every request in order. A token of a text is a character.
    """

    def __init__(self, answer: Callable[[Sequence[Message]], Answer | Awaitable[Answer]]) -> None:
        self._answer = answer
        self.requests: list[CompletionRequest] = []

    async def complete(self, request: CompletionRequest) -> Completion:
        """The function's answer to these messages."""
        messages = request.messages
        self.requests.append(request._replace(messages=list(messages)))
        reply = self._answer(messages)
        answer = await reply if inspect.isawaitable(reply) else reply
        if isinstance(answer, EngineError):
            raise answer
        if isinstance(answer, Completion):
            return answer
        num_prompt_tokens = sum(len(message["content"]) for message in messages)
        return Completion(answer, num_prompt_tokens, len(answer), "stop")

    async def close(self) -> None:
        """There is nothing to let go of."""
