"""What endpoints answered, each in a file of its own: nobody asks, or pays, for it again."""

from collections.abc import Callable
from pathlib import Path

from agentworld.engine.answer import ChatAnswer
from agentworld.records.base import Digest, JsonObject, Record, now

ANSWERS = "answers"
"""Their folder in a store. It is shared by all its steps: another threshold, or a new release of
ours, asks for nothing again."""


class Question(Record):
    """What an answer depends on; its digest names the answer, wherever the server is."""

    request: JsonObject
    """The body of the request."""
    number: int
    """Answers of different numbers are different rollouts of one request."""


class Answer(Record):
    """What a model said; see `ChatAnswer`."""

    text: str
    thought: str
    is_whole: bool
    model: str
    num_prompt_tokens: int | None
    num_cached_tokens: int
    num_tokens: int | None
    at: str
    """When it was answered."""

    @classmethod
    def of(cls, answer: ChatAnswer) -> "Answer":
        """An answer that came just now."""
        return cls(**answer._asdict(), at=now())


class AnswerStore:
    """A folder of answers; `keep` is called with the path of each new file."""

    def __init__(self, folder: Path, keep: Callable[[Path], None] = lambda _: None) -> None:
        self._folder = folder
        self._keep = keep

    def find(self, question: Digest) -> Answer | None:
        """The answer to a question; null where nobody asked it."""
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
