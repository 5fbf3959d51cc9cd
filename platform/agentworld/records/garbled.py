"""Reading what somebody may have garbled: each bad thing becomes one sentence that names it.

Garbage raises anything: wrong types, bytes that are no text, a number that no JSON has, brackets
200,000 deep. Whoever reads evidence reads it inside of one of these, so that the rest is read too.
An address in a sentence may hold a password: `redact` takes that out.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, NamedTuple, TypeVar

from pydantic import ValidationError

from agentworld.errors import AgentworldError, EvidenceError, NotFound
from agentworld.records.base import first_problem

_Item = TypeVar("_Item")
_Record = TypeVar("_Record")

_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (RecursionError, "it is nested too deeply"),
    (MemoryError, "it is too large"),
    (OverflowError, "a number in it is too large"),
    (UnicodeError, "it has bytes that are no text"),
    (json.JSONDecodeError, "it is no JSON"),
)

_PASSWORD = re.compile(r"(^|[\s/'\"=(])([^\s:/@]*):(?!//)\S*@")
_SECRET = "password|passwd|secret|token|key|signature|credential"
_PARAMETER = re.compile(rf"(?i)([?&;](?:[\w.-]*(?:{_SECRET})[\w.-]*|sig)=)[^&;\s]*")


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Raises EvidenceError, which names `name` and says why, for all that cannot be read.

    NotFound, EvidenceError and what a retry may help with are raised as they are.
    """
    try:
        yield
    except AgentworldError as error:
        if error.retryable or isinstance(error, EvidenceError | NotFound):
            raise
        raise EvidenceError(f"{name} is garbled: {error}") from error
    except Exception as error:  # as many kinds as there is garbage
        raise EvidenceError(f"{name} is garbled: {reason_of(error)}; restore it") from error


def reason_of(error: Exception) -> str:
    """Why something cannot be read, in words."""
    if isinstance(error, ValidationError):
        return first_problem(error)
    if isinstance(error, OSError):
        return str(error.strerror or error)
    reasons = (reason for kind, reason in _REASONS if isinstance(error, kind))
    return next(reasons, "a value in it is missing or of another type")


def readable(name: str, problems: Iterable[str]) -> Iterator[str]:
    """The problems; where looking for them fails, that is the last one."""
    try:
        with reading(name):
            yield from problems
    except (EvidenceError, NotFound) as error:
        yield str(error)


class ReadResult(NamedTuple, Generic[_Record]):
    """What became of several things, of which some may be garbled."""

    records: list[_Record]
    problems: list[str]
    """A sentence for each of the others."""

    @property
    def whole(self) -> list[_Record]:
        """All of them; raises EvidenceError where one is garbled."""
        for problem in self.problems:
            raise EvidenceError(problem)
        return self.records


def read_each(items: Iterable[_Item], read: Callable[[_Item], _Record]) -> ReadResult[_Record]:
    """Reads each by itself; `read` raises EvidenceError or NotFound for what is garbled."""
    records, problems = list[_Record](), list[str]()
    for item in items:
        try:
            records.append(read(item))
        except (EvidenceError, NotFound) as error:
            problems.append(str(error))
    return ReadResult(records, problems)


def read_list(name: str, read: Callable[[], list[_Record]]) -> ReadResult[_Record]:
    """All of a list, or nothing of it and why."""
    try:
        with reading(name):
            return ReadResult(read(), [])
    except (EvidenceError, NotFound) as error:
        return ReadResult([], [str(error)])


def any_text(data: bytes) -> str:
    """A column's text. SQLite's driver ends the reading of all rows at one that is no UTF-8."""
    return data.decode("utf-8", "surrogateescape")


def redact(text: str) -> str:
    """An address, or words about one, with its secrets as `***`; rather too many than too few."""
    return _PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1\2:***@", text))
