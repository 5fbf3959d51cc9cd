"""A baseline that predicts the observation of the most similar training turn.

Turns are compared within the same tool: first by the same action, then by the same last line before
it, then by the share of common words in the action and in what the prompt and the history say of
the names in the action. Memory is bounded: if there are too many turns, it keeps a sample, the same
each time; of a long history it reads the end.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple
from zlib import crc32

import numpy as np

from agentworld.engine.base import Completion, CompletionRequest
from agentworld.evaluate.tools import WORD, tool_of, words_of
from agentworld.records.message import Message
from agentworld.records.sample import Sample
from agentworld.rendering.messages import system_text

# the best of nine settings on 2,000 held-out turns
_SAME_ACTION = 1.0
_SAME_PLACE = 0.5

_MAX_BYTES = 400_000_000
_OVERHEAD = 400
"""Approximate memory of a turn beside its texts and words, in bytes."""
_MOST_CONTEXT = 16_000


class _Situation(NamedTuple):
    """What an observation depends on."""

    action: str
    place: str
    """The last line of the observation before the action."""
    words: frozenset[str]


class _Turn(NamedTuple):
    """A remembered turn, with hashes of action, place and words."""

    sample_key: float
    tool: str
    action: int
    place: int
    words: "array[int]"
    observation: str

    @property
    def size(self) -> int:
        """Approximate memory in bytes."""
        return _OVERHEAD + len(self.observation) + 8 * len(self.words)


class NearestTransition:
    """An index over the turns of the training samples, used like an engine."""

    def __init__(self, samples: Iterable[Sample], max_bytes: int = _MAX_BYTES) -> None:
        """Uses about `max_bytes` at most."""
        turns: dict[str, list[_Turn]] = defaultdict(list)
        for turn in _sampled_turns(samples, max_bytes):
            turns[turn.tool].append(turn)
        self._indexes = {tool: _ToolIndex(tool_turns) for tool, tool_turns in turns.items()}

    async def complete(self, request: CompletionRequest) -> Completion:
        """The observation of the nearest turn."""
        messages = request.messages
        index = self._indexes.get(tool_of(messages[-1]["content"]))
        text = index.nearest(_situation_of(messages)) if index else ""
        return Completion(text, 0, 0, "stop")

    async def close(self) -> None:
        """Does nothing."""


def _sampled_turns(samples: Iterable[Sample], max_bytes: int) -> list[_Turn]:
    """The turns whose sample key is below a share, which is halved if they take too much memory."""
    turns: list[_Turn] = []
    share, size = 1.0, 0
    for sample in samples:
        for turn in _turns_of(sample, share):
            turns.append(turn)
            size += turn.size
        while size > max_bytes:
            share /= 2
            turns = [turn for turn in turns if turn.sample_key < share]
            size = sum(turn.size for turn in turns)
    return turns


def _turns_of(sample: Sample, share: float) -> Iterator[_Turn]:
    lines = system_text(sample.prompt).splitlines()
    place = ""
    for number, turn in enumerate(sample.turns):
        sample_key = crc32(f"{sample.trajectory} {number}".encode()) / 2**32
        if sample_key < share:
            situation = _situation(turn.action, place, lines)
            yield _Turn(
                sample_key,
                tool_of(turn.action),
                hash(situation.action),
                hash(situation.place),
                array("q", map(hash, situation.words)),
                turn.observation,
            )
        lines.append(f"{turn.action}\n{turn.observation}")
        place = _last_line(turn.observation)


class _ToolIndex:
    """The turns of one tool, and for each hash of a word the turns with the word."""

    def __init__(self, turns: Sequence[_Turn]) -> None:
        self._observations = [turn.observation for turn in turns]
        self._sizes = np.array([len(turn.words) for turn in turns])
        self._actions = np.array([turn.action for turn in turns])
        self._places = np.array([turn.place for turn in turns])
        words = np.fromiter(chain.from_iterable(turn.words for turn in turns), np.int64)
        order = np.argsort(words, kind="stable")
        self._words = words[order]
        self._holders = np.repeat(np.arange(len(turns), dtype=np.int32), self._sizes)[order]

    def nearest(self, situation: _Situation) -> str:
        """The observation of the most similar turn; the first of several."""
        words = np.array([*map(hash, situation.words)], dtype=np.int64)
        bounds = [np.searchsorted(self._words, words, side) for side in ("left", "right")]
        matches = [self._holders[low:high] for low, high in zip(*bounds, strict=True)]
        num = len(self._observations)
        common = np.bincount(np.concatenate([*matches, _NO_TURNS]), minlength=num)
        score = common / np.maximum(1, self._sizes + len(situation.words) - common)
        score[self._actions == hash(situation.action)] += _SAME_ACTION
        score[self._places == hash(situation.place)] += _SAME_PLACE
        return self._observations[int(score.argmax())]


_NO_TURNS = np.array([], dtype=np.int32)


def _situation_of(messages: Sequence[Message]) -> _Situation:
    """The situation in a model's messages."""
    system, *exchanges, action = (message["content"] for message in messages)
    lines = system.splitlines()
    lines += [f"{a}\n{o}" for a, o in zip(exchanges[::2], exchanges[1::2], strict=True)]
    place = _last_line(exchanges[-1]) if exchanges else ""
    return _situation(action, place, lines)


def _situation(action: str, place: str, lines: Sequence[str]) -> _Situation:
    words = words_of(action)
    names = [word.lstrip("$") for word in words[1:] if word[0].isalpha() or word[0] == "$"]
    lines = _end_of(lines)
    naming = [part for part in lines if any(name in part for name in names)] if names else lines
    context = WORD.findall("\n".join(naming))
    return _Situation(action, place, frozenset([*(f"{word} " for word in words), *context]))


def _end_of(lines: Sequence[str]) -> list[str]:
    """The last lines, as many as are read."""
    remaining = _MOST_CONTEXT
    end: list[str] = []
    for line in reversed(lines):
        if remaining <= 0:
            break
        end.append(line[:remaining])
        remaining -= len(line)
    return end


def _last_line(observation: str) -> str:
    return observation.rpartition("\n")[2]
