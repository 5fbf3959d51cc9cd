"""What a kind of signed statement is, and the table of all kinds.

The ledger keeps a statement as a row, and the evidence mirror a copy of its envelope. A kind of
another package is an entry point of the group `agentworld.statements`.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import ClassVar, Literal, NamedTuple

from pydantic import JsonValue

from agentworld.kinds import Kinds
from agentworld.records.attestation import Attestation
from agentworld.records.base import Digest, Record

WHOLE_LEDGER = "whole-ledger"
"""The subject, and the folder, of what is about no run."""

Column = Literal["name", "run", "subject"]
About = Literal["", "run", "version", "weights"]

_KINDS = Kinds[type["SignedRecord"]](
    group="agentworld.statements",
    noun="kind of statement",
    attribute="KIND",
    modules={
        "alias": "agentworld.records.statements.alias",
        "edge": "agentworld.records.statements.edge",
        "erasure": "agentworld.records.statements.erasure",
        "genesis": "agentworld.records.statements.genesis",
        "registration": "agentworld.records.statements.registration",
        "restore": "agentworld.records.statements.restore",
        "validation": "agentworld.records.statements.validation",
        "withdrawal": "agentworld.records.statements.withdrawal",
    },
)


class LedgerColumns(NamedTuple):
    """Where the row of a statement is found; empty where it is about no such thing."""

    subject: str
    simulator: str
    run: str
    at: str


class SignedRecord(Record):
    """A record that is signed, and all that is particular to its kind."""

    kind: ClassVar[str]
    """Its name in the table and in the ledger."""
    noun: ClassVar[str] = ""
    """What people call it, where that is not the kind."""
    predicate_type: ClassVar[str]
    field: ClassVar[str] = ""
    """The key of the predicate that holds the record; empty where it is the predicate."""
    signer: ClassVar[Literal["service", "step"]] = "service"
    """Whose keys sign it."""
    folder: ClassVar[str]
    """Of the copies in the evidence mirror, with a dash, which no run's name has."""
    column: ClassVar[Column] = "subject"
    """By which rows that belong together are found; their copies are in one folder. A `name` has
    that folder in it.
    """
    about: ClassVar[About] = ""
    """Whose own verification compares rows and copies too. For what is about a run, that of the
    ledger leaves it to the runs.
    """
    missing_text: ClassVar[str] = "is gone from the ledger; restore it"
    """What is said of a copy that the ledger has no row of."""

    @classmethod
    def folder_of(cls, value: str) -> str:
        """Where the copies are of what was signed about a run, a version with others of its name,
        an artifact, an alias: whatever `column` holds.
        """
        part = value.removeprefix("sha256:").partition("@")[0]
        return f"{cls.folder}/{part or WHOLE_LEDGER}"

    @classmethod
    def describe_row(cls, name: str, columns: LedgerColumns) -> str:
        """What a problem calls a row, and by that its subject."""
        subject = f"{columns.subject} of run {columns.run}" if columns.run else columns.subject
        return f"the {cls.noun or cls.kind} {name} of {subject}"

    def describe(self, name: str) -> str:
        """What a problem calls it, where its signature holds."""
        return self.describe_row(name, self.columns)

    def is_of(self, value: str) -> bool:
        """Whether its column holds this."""
        return bool(getattr(self.columns, self.column) == value)

    @property
    def path(self) -> str:
        """The name of its row and of its copy."""
        folder = self.folder_of(getattr(self.columns, self.column))
        return f"{folder}/{self.digest.removeprefix('sha256:')}.dsse.json"

    def path_of(self, envelope: bytes) -> str:  # noqa: ARG002 - for a kind that is named by it
        """The same of one that is signed."""
        return self.path

    @property
    @abstractmethod
    def columns(self) -> LedgerColumns:
        """Where its row is found."""

    @property
    @abstractmethod
    def subject_digest(self) -> Digest:
        """What its subject goes by."""

    @property
    def subject_name(self) -> str:
        """What people call the subject."""
        return self.columns.subject

    @property
    def predicate(self) -> dict[str, JsonValue]:
        """What is signed of the subject."""
        own = self.model_dump(mode="json")
        return {self.field: own} if self.field else own


class StepRecord(SignedRecord):
    """What a step says of its own work, and hands in: of those that say the same the first stays.

    Who registers a version or validates an agent writes that where others write too. What was
    signed of it lies with the ledger, so that it is missed.
    """

    signer: ClassVar[Literal["service", "step"]] = "step"

    @property
    @abstractmethod
    def same(self) -> tuple[object, ...]:
        """What those that say the same have in common."""


Declare = Callable[[SignedRecord], Attestation]
"""Signs one; whoever keeps the attestation makes it count."""


@cache
def statement_kinds() -> dict[str, type[SignedRecord]]:
    """All kinds by their names."""
    return {name: _KINDS.find(name) for name in _KINDS.names}
