"""Baselines: predictors without learning that a world model must beat.

They are engines, so they are called and scored like a model.
"""

from collections import Counter
from collections.abc import Iterable

from agentworld.engine.base import Completion, CompletionRequest
from agentworld.evaluate.tools import tool_of
from agentworld.records.sample import Sample

_MOST_CHARACTERS = 1 << 26
_OVERHEAD = 200
"""The approximate memory of a counted observation beside its text."""


class _Baseline:
    """An engine without resources."""

    async def close(self) -> None:
        """Does nothing."""


class CopyPrevious(_Baseline):
    """Repeats the last observation; empty at an episode's start."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """The last observation."""
        observations = [
            message["content"] for message in request.messages if message["role"] == "assistant"
        ]
        return Completion(observations[-1] if observations else "", 0, 0, "stop")


class RepeatEarlier(_Baseline):
    """Repeats the last observation of the same action in the episode; empty for a new action."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """The observation of the latest turn with this action."""
        _, *exchanges, action = (message["content"] for message in request.messages)
        observations = dict(zip(exchanges[::2], exchanges[1::2], strict=True))
        return Completion(observations.get(action, ""), 0, 0, "stop")


class MostFrequent(_Baseline):
    """Predicts the most frequent training observation of the action's tool; the first of several.
    Memory is bounded: if there are too many different observations, the rarest are forgotten.
    """

    def __init__(self, samples: Iterable[Sample], most_characters: int = _MOST_CHARACTERS) -> None:
        counts = _Counts(most_characters)
        for sample in samples:
            for turn in sample.turns:
                counts.add(tool_of(turn.action), turn.observation)
        self._answers = counts.most_frequent()

    async def complete(self, request: CompletionRequest) -> Completion:
        """The same for every action of a tool; empty for a tool that training did not have."""
        tool = tool_of(request.messages[-1]["content"])
        return Completion(self._answers.get(tool, ""), 0, 0, "stop")


class _Counts:
    """Counts the observations of each tool."""

    def __init__(self, most_characters: int) -> None:
        self._most_characters = most_characters
        self._size = 0
        self._counts: dict[str, Counter[str]] = {}

    def add(self, tool: str, observation: str) -> None:
        """Counts one; if there is no more room, frees half of it."""
        counts = self._counts.setdefault(tool, Counter())
        counts[observation] += 1
        if counts[observation] == 1:
            self._size += len(observation) + _OVERHEAD
        if self._size > self._most_characters:
            count = 0
            while self._size > self._most_characters // 2:
                count += 1
                self._forget(count)

    def most_frequent(self) -> dict[str, str]:
        """The most frequent observation by tool."""
        return {
            tool: max(counts, key=counts.__getitem__)
            for tool, counts in self._counts.items()
            if counts
        }

    def _forget(self, count: int) -> None:
        """Forgets observations that were counted so often or less."""
        for tool, counts in [*self._counts.items()]:
            for observation in [text for text, num in counts.items() if num <= count]:
                del counts[observation]
                self._size -= len(observation) + _OVERHEAD
            if not counts:
                del self._counts[tool]
