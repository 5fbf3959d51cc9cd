"""Reads untrusted data: each garbled item becomes one sentence that names it.

Garbage raises many kinds of exceptions: wrong types, invalid UTF-8, invalid numbers, brackets
nested 200,000 deep. Readers of evidence catch them with these functions and continue with the rest.
An address in a sentence may contain a password, which `redact` removes.
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
    (UnicodeError, "a text in it is not valid Unicode"),
    (json.JSONDecodeError, "it is not JSON"),
)

_PASSWORD = re.compile(r"(^|[\s/'\"=(])([^\s:/@]*):(?!//)\S*@")
_SECRET = "password|passwd|secret|token|key|signature|credential"
_PARAMETER = re.compile(rf"(?i)([?&;](?:[\w.-]*(?:{_SECRET})[\w.-]*|sig)=)[^&;\s]*")


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Raises EvidenceError, with `name` and the reason, for unreadable data.

    NotFound, EvidenceError and errors that a retry may fix are raised unchanged.
    """
    try:
        yield
    except AgentworldError as error:
        if error.retryable or isinstance(error, EvidenceError | NotFound):
            raise
        raise EvidenceError(f"{name} is garbled: {error}") from error
    except Exception as error:  # garbage raises many kinds of exceptions
        raise EvidenceError(f"{name} is garbled: {reason_of(error)}; restore it") from error


def reason_of(error: Exception) -> str:
    """The reason why something is unreadable, as text."""
    if isinstance(error, ValidationError):
        return first_problem(error)
    if isinstance(error, OSError):
        return str(error.strerror or error)
    reasons = (reason for kind, reason in _REASONS if isinstance(error, kind))
    return next(reasons, "a value in it is missing or has another type")


def readable(name: str, problems: Iterable[str]) -> Iterator[str]:
    """The problems; if finding them fails, that is the last one."""
    try:
        with reading(name):
            yield from problems
    except (EvidenceError, NotFound) as error:
        yield str(error)


class ReadResult(NamedTuple, Generic[_Record]):
    """The valid items among several, and the problems of the others."""

    records: list[_Record]
    problems: list[str]
    """A sentence for each garbled item."""

    @property
    def whole(self) -> list[_Record]:
        """All items; raises EvidenceError if one is garbled."""
        for problem in self.problems:
            raise EvidenceError(problem)
        return self.records


def read_each(items: Iterable[_Item], read: Callable[[_Item], _Record]) -> ReadResult[_Record]:
    """Reads each item separately; `read` raises EvidenceError or NotFound for a garbled one."""
    records, problems = list[_Record](), list[str]()
    for item in items:
        try:
            records.append(read(item))
        except (EvidenceError, NotFound) as error:
            problems.append(str(error))
    return ReadResult(records, problems)


def read_list(name: str, read: Callable[[], list[_Record]]) -> ReadResult[_Record]:
    """A whole list, or an empty one and the problem."""
    try:
        with reading(name):
            return ReadResult(read(), [])
    except (EvidenceError, NotFound) as error:
        return ReadResult([], [str(error)])


def any_text(data: bytes) -> str:
    """Decodes a column's text leniently, because SQLite's driver stops reading all rows at invalid
    UTF-8.
    """
    return data.decode("utf-8", "surrogateescape")


def redact(text: str) -> str:
    """Replaces the secrets of an address, or of text about one, by `***`; errs towards replacing
    too much.
    """
    return _PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1\2:***@", text))
