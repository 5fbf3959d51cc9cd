"""What every record shares: frozen fields, no unknown keys, and a digest of its content.

A digest is sha256 over canonical JSON (RFC 8785), so that equal records have equal
digests on every machine and in every language.
"""

import hashlib
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Self

import rfc8785
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from agentworld.errors import InputError

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
"""`sha256:` and 64 hexadecimal digits."""

Name = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
"""Words of a user's that every database can hold: Unicode without NUL."""

Words = Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=r"^[^\x00]*$")]
"""The same: some, and no more than anybody reads."""

Label = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
"""A short name as DNS takes one: of a tenant, or of a tenant's key."""

_PIECE_BYTES = 1 << 20


class Record(BaseModel):
    """A frozen value that serialises to JSON unchanged."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    @property
    def canonical(self) -> bytes:
        """This record as canonical JSON."""
        return canonical_json(self.model_dump(mode="json"))

    @property
    def digest(self) -> str:
        """sha256 over this record's canonical JSON."""
        return digest_bytes(self.canonical)

    def write(self, path: Path) -> None:
        """Writes the record as JSON, whole or not at all."""
        write_whole(path, self.model_dump_json(indent=2).encode() + b"\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a record from JSON; raises InputError naming the file and the first wrong field."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error
        except ValidationError as error:
            raise InputError(f"{path} is no {cls.__name__}: {first_problem(error)}") from error


def digest_bytes(data: bytes) -> str:
    """The digest of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_json(value: object) -> str:
    """The digest of a JSON value, whatever the order of its keys."""
    return digest_bytes(canonical_json(value))


def canonical_json(value: object) -> bytes:
    """The one form of a JSON value (RFC 8785); raises InputError for what has none."""
    try:
        return rfc8785.dumps(json.loads(json.dumps(value)))
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise InputError(f"a value cannot be named by a digest: {error}; correct it") from error


def digest_file(path: Path, told: Callable[[int], None] | None = None) -> str:
    """The digest of a file, read in pieces; `told` hears the size of each."""
    sha256 = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_PIECE_BYTES):
            sha256.update(piece)
            if told:
                told(len(piece))
    return "sha256:" + sha256.hexdigest()


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file so that a reader, or a crash, sees the old content or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Of its own name, for two processes may write the same file at once.
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.draft")
    try:
        draft.write_bytes(data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def first_problem(error: ValidationError) -> str:
    """The first thing that pydantic found wrong, as words: where, what, which value."""
    problem = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in problem["loc"]) or "the whole"
    if problem["type"] == "missing":  # what is around it may hold a secret
        return f"{where}: {problem['msg']}"
    return f"{where}: {problem['msg']} (got {str(problem['input'])[:80]!r})"
