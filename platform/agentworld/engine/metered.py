"""Counts what an engine is asked for one thing: what it read, what it wrote, how long it took."""

import time
from collections.abc import Callable

from agentworld.engine.base import Completion, CompletionRequest, Engine
from agentworld.errors import EngineError
from agentworld.records.usage import Usage

_NOTHING = Usage()


class Metered:
    """The engine, with the usage of all that was asked through it.

    A request that failed has used the engine's time; how many tokens, nobody tells.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.perf_counter) -> None:
        self._engine = engine
        self._clock = clock
        self._num_requests = 0
        self.usage = _NOTHING
        self.queued_seconds = 0.0
        """In which it waited for its turn."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """The engine's answer, counted."""
        start, counts, queued = self._clock(), (0, 0, 0), 0.0
        try:
            completion = await self._engine.complete(request)
            queued = completion.queued_seconds
            read, cached = completion.num_prompt_tokens, completion.num_cached_tokens
            counts = read, cached, completion.num_tokens
        except EngineError as error:
            queued = error.queued_seconds
            raise
        finally:
            used = Usage(*counts, self._clock() - start - queued)
            # Most things take one request.
            self.usage = self.usage.plus(used) if self._num_requests else used
            self._num_requests += 1
            self.queued_seconds += queued
        return completion
