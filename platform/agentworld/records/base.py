"""The base class of records: frozen fields, no unknown keys, and a digest of the content.

A digest is sha256 over canonical JSON (RFC 8785), so equal records have equal digests on every
machine and in every language.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from operator import not_
from pathlib import Path
from typing import Annotated, NamedTuple, Never, Self, TypeVar

import rfc8785
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticSerializationError

from agentworld.errors import InputError
from agentworld.records.file import input_errors, open_regular, read_regular, write_whole

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
"""`sha256:` and 64 hexadecimal digits."""

Name = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
"""User text that every database can store: Unicode without NUL."""

ShortText = Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=r"^[^\x00]*$")]
"""A Name that is not empty and has a limited length."""

Label = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
"""A DNS label: the name of a tenant, or of a tenant's key."""

_Value = TypeVar("_Value")
Sparse = Annotated[_Value, Field(exclude_if=not_)]
"""A field that JSON leaves out if it has its default; records without it keep their digests."""

_PIECE_BYTES = 1 << 20
_MOST_BYTES = 1 << 40
MOST_RECORD_BYTES = 1 << 24
_MOST_PROBLEMS = 1_000
FIRST_INEXACT = 1 << 53
"""From here on, a double does not hold every integer."""
_FIRST_WITH_EXPONENT = 10**21
_MOST_OF_VALUE = 80
_MOST_OF_SENTENCE = 4_000
_SURROGATE = re.compile("[\ud800-\udfff]")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_LAST = re.compile("[\ue000-\uffff]")


def _shorten(text: object) -> object:
    if not isinstance(text, str):
        return text
    cut = text[:_MOST_OF_SENTENCE]
    if len(cut) < len(text):
        cut += f"... ({len(text):,} characters)"
    return cut if cut.isascii() else cut.encode("utf-8", "backslashreplace").decode()


Sentence = Annotated[str, BeforeValidator(_shorten)]
"""Text about a finding, which may quote any input: non-Unicode characters are escaped, and overlong
text is cut.
"""


class Record(BaseModel):
    """A frozen value that serialises to JSON without loss."""

    # JSON has no infinity, and pydantic would write it as null.
    model_config = ConfigDict(
        frozen=True, extra="forbid", serialize_by_alias=True, allow_inf_nan=False
    )

    @property
    def canonical(self) -> bytes:
        """This record as canonical JSON."""
        with suppress(_NotPlain, PydanticSerializationError, RecursionError):
            return _canonical_in_c(self.model_dump_json())
        return canonical_json(self.model_dump(mode="json"))

    @property
    def digest(self) -> str:
        """sha256 over this record's canonical JSON."""
        return digest_bytes(self.canonical)

    def write(self, path: Path) -> None:
        """Writes the record as JSON, atomically."""
        write_whole(path, self.model_dump_json(indent=2).encode() + b"\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a record from JSON; raises InputError naming the file and the first invalid
        field.
        """
        try:
            with input_errors(path):
                data = read_regular(path, MOST_RECORD_BYTES)
            return cls.model_validate_json(data)
        except ValidationError as error:
            raise InputError(f"{path} is no {cls.__name__}: {first_problem(error)}") from error


def now() -> str:
    """The current time in the format of records and statements."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def digest_bytes(data: bytes) -> str:
    """The digest of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_json(value: object) -> str:
    """The digest of a JSON value, independent of the order of its keys."""
    return digest_bytes(canonical_json(value))


def canonical_json(value: object) -> bytes:
    """The canonical form of a JSON value (RFC 8785); raises InputError if it has none."""
    try:
        text = json.dumps(value)
        try:
            return _canonical_in_c(text)
        except _NotPlain:
            return rfc8785.dumps(json.loads(text, parse_int=_read_integer))
    except (ValueError, RecursionError) as error:
        raise InputError(f"a value has no canonical JSON: {error}; correct it") from error


class _NotPlain(Exception):
    """A value whose JSON from Python may differ from RFC 8785."""


def _canonical_in_c(text: str) -> bytes:
    """The canonical form of a JSON text, ten times as fast as rfc8785; may raise _NotPlain."""
    value = json.loads(text, parse_int=_small, parse_float=_refuse, parse_constant=_refuse)
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # Keys are sorted as UTF-16, in which characters beyond 16 bits sort before the last of the
    # rest.
    if _SURROGATE.search(canonical) or (_BEYOND.search(canonical) and _LAST.search(canonical)):
        raise _NotPlain
    return canonical.encode()


def _small(literal: str) -> int:
    number = int(literal)
    if abs(number) >= FIRST_INEXACT:
        raise _NotPlain
    return number


def _refuse(literal: str) -> Never:
    raise _NotPlain(literal)


def read_canonical(value: JsonValue) -> JsonValue:
    """Restores the numbers of a value that was read from canonical JSON.

    All its numbers are doubles. From 2**53 on, they may be written as integers, which Python reads
    as another number: -65011615750644810 for -6.501161575064481e16.
    """
    match value:
        case dict():
            return {key: read_canonical(item) for key, item in value.items()}
        case list():
            return [read_canonical(item) for item in value]
        case float() if not math.isfinite(value):
            raise ValueError(f"JSON has no number {value}")
        case int() if abs(value) >= FIRST_INEXACT:
            return _read_integer(value)
    return value


JsonObject = Annotated[dict[str, JsonValue], AfterValidator(read_canonical)]
"""An object of any JSON values, equal to the one read from its canonical form."""


def _read_integer(literal: int | str) -> int | float:
    """The double that RFC 8785 writes as this integer; other integers are unchanged, because they
    have no canonical form.
    """
    number = int(literal)
    if FIRST_INEXACT <= abs(number) < _FIRST_WITH_EXPONENT:
        double = float(number)
        if int(rfc8785.dumps(double)) == number:
            return double
    return number


def digest_file(path: Path, report: Callable[[int], None] | None = None) -> str:
    """The digest of a file, read in chunks; `report` receives the size of each.

    Raises InputError for an unreadable file, or one of more than a tebibyte.
    """
    sha256 = hashlib.sha256()
    with input_errors(path), open_regular(path, _MOST_BYTES) as file:
        while piece := file.read(_PIECE_BYTES):
            sha256.update(piece)
            if report:
                report(len(piece))
    return "sha256:" + sha256.hexdigest()


def first_problem(error: ValidationError, redact: Callable[[str], str] = str) -> str:
    """The first of pydantic's errors as text: the field, the problem and the value.

    `redact` removes secrets from the field's name and from the value.
    """
    if error.error_count() > _MOST_PROBLEMS:  # formatting all of them would be slow
        return f"{error.error_count()} values are wrong"
    return ": ".join(describe_problem(error.errors(include_url=False)[0], redact))


class Complaint(NamedTuple):
    """One of pydantic's errors."""

    field: str
    """The dotted path, such as `model.hidden_size`."""
    text: str
    """The problem, with the value."""


def describe_problem(problem: ErrorDetails, redact: Callable[[str], str] = str) -> Complaint:
    """One of pydantic's errors as text (see `first_problem`)."""
    location = redact(".".join(map(str, problem["loc"]))[:_MOST_OF_SENTENCE]) or "the whole"
    field = location[:_MOST_OF_VALUE]
    # The value, or its surroundings, may contain a secret.
    if problem["type"] in ("missing", "environment", "secret"):
        return Complaint(field, problem["msg"])
    if problem["type"] == "union_tag_not_found":
        return Complaint(field, f"the field {problem['ctx']['discriminator']} is missing")
    label = f"{location}: "
    value = redact(label + _start(problem["input"])).removeprefix(label)[:_MOST_OF_VALUE]
    return Complaint(field, f"{problem['msg']} (got {value!r})")


def _start(value: object) -> str:
    try:
        return str(value)[:_MOST_OF_SENTENCE]  # more than is shown, so that no secret is cut
    except (RecursionError, ValueError):  # nested too deeply, or a number that is too long
        return f"a {type(value).__name__}"
