"""What a model predicts, or a hole: where its failures are parted from ours."""

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
"""Kinds of EngineError that the model brought about itself."""

NOTHING = ""
"""What a model predicts that fails by itself; it is wrong whatever the truth is."""


class Predictor:
    """Asks an engine for observations; `problem` is the last failure of the engine's own."""

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
        """The observation; null where the engine failed, which is no fault of the model."""
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
