"""An engine without a model, for tests and dry runs."""

import inspect
from collections.abc import Awaitable, Callable, Sequence

from agentworld.engine.base import Completion, CompletionRequest
from agentworld.errors import EngineError
from agentworld.records.message import Message

Answer = str | Completion | EngineError


class FakeEngine:
    """Answers with the result of a function of the messages: a text, a Completion, or an
    EngineError to raise. The function may be a coroutine. An answer depends on the messages alone,
    and `requests` has every request in order. Each character counts as a token.
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
        """Does nothing."""
