"""A cache of endpoints' answers, each in a file, so that no request is sent or paid for twice."""

from collections.abc import Callable
from pathlib import Path

from agentworld.engine.answer import ChatAnswer
from agentworld.records.base import Digest, JsonObject, Record, now

ANSWERS = "answers"
"""Their folder in a store.

All its steps share it, so another threshold or a new release sends no request again.
"""


class Question(Record):
    """All that an answer depends on; its digest names the answer, without the server's address."""

    request: JsonObject
    """The body of the request."""
    number: int
    """Different numbers are different rollouts of one request."""


class Answer(Record):
    """A model's answer; see `ChatAnswer`."""

    text: str
    thought: str
    is_whole: bool
    model: str
    num_prompt_tokens: int | None
    num_cached_tokens: int
    num_tokens: int | None
    at: str
    """The time of the answer."""

    @classmethod
    def of(cls, answer: ChatAnswer) -> "Answer":
        """Converts a new answer."""
        return cls(**answer._asdict(), at=now())


class AnswerStore:
    """A folder of answers; `keep` is called with the path of each new file."""

    def __init__(self, folder: Path, keep: Callable[[Path], None] = lambda _: None) -> None:
        self._folder = folder
        self._keep = keep

    def find(self, question: Digest) -> Answer | None:
        """The answer to a question; null if it is not stored."""
        path = self._path(question)
        return Answer.read(path) if path.is_file() else None

    def add(self, question: Digest, answer: Answer) -> None:
        """Stores an answer; it is durable when the call returns."""
        path = self._path(question)
        answer.write(path)
        self._keep(path)

    def _path(self, question: Digest) -> Path:
        digits = question.removeprefix("sha256:")
        return self._folder / digits[:2] / f"{digits}.json"
