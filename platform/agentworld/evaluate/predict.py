"""A model's prediction, or a hole; separates the model's failures from ours."""

from collections.abc import Iterable, Sequence

from agentworld.engine.base import CompletionRequest, Engine
from agentworld.errors import EngineError
from agentworld.records.message import Message
from agentworld.records.progress import OnProgress
from agentworld.records.simulator import Sampling
from agentworld.records.trajectory import Exchange, PromptParts
from agentworld.rendering.messages import world_messages
from agentworld.rendering.parse import parse_observation

OWN_FAILURES = {"cut-off", "unparsable"}
"""Kinds of EngineError that the model itself caused."""

NOTHING = ""
"""The prediction of a model that failed by itself; it is always wrong."""


class Predictor:
    """Requests predictions from an engine; `problem` is the last failure of the engine."""

    def __init__(
        self, engine: Engine, sampling: Sampling, on_progress: OnProgress, total: int
    ) -> None:
        self.problem = ""
        self._engine = engine
        self._sampling = sampling
        self._on_progress = on_progress
        self._done = 0
        self._total = total

    async def predict(
        self, prompt: PromptParts, turns: Iterable[Exchange], action: str
    ) -> str | None:
        """The predicted observation; null if the engine failed, which is not the model's fault."""
        text = await self._ask(world_messages(prompt, turns, action))
        self._done += 1
        self._on_progress(self._done, self._total)
        return text

    async def _ask(self, messages: Sequence[Message]) -> str | None:
        try:
            completion = await self._engine.complete(CompletionRequest(messages, self._sampling))
        except EngineError as error:
            if error.kind in OWN_FAILURES:
                return NOTHING
            self.problem = str(error)
            return None
        return parse_observation(completion.text) or NOTHING
