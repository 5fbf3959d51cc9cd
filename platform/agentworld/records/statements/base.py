"""The base class of signed statements, and the table of all kinds.

The ledger stores a statement as a row, and the evidence mirror has a copy of its envelope. Other
packages add kinds by entry points of the group `agentworld.statements`.
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
"""The subject and the folder of statements that are not about a run."""

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
    """The searchable columns of a statement's row; empty if they do not apply."""

    subject: str
    simulator: str
    run: str
    at: str


class SignedRecord(Record):
    """A record that is signed, with the properties of its kind."""

    kind: ClassVar[str]
    """Its name in the table and in the ledger."""
    noun: ClassVar[str] = ""
    """Its name in messages, if that is not the kind."""
    predicate_type: ClassVar[str]
    field: ClassVar[str] = ""
    """The key of the predicate that holds the record; empty if the record is the predicate."""
    signer: ClassVar[Literal["service", "step"]] = "service"
    """The owner of the keys that sign it."""
    folder: ClassVar[str]
    """The folder of the copies in the evidence mirror; it has a dash, which a run's name never
    has.
    """
    column: ClassVar[Column] = "subject"
    """The column by which related rows are found; their copies share a folder. A `name` contains
    that folder.
    """
    about: ClassVar[About] = ""
    """The subject whose own verification compares rows and copies, too. Statements about a run are
    checked with their run and not with the ledger.
    """
    missing_text: ClassVar[str] = "is gone from the ledger; restore it"
    """The problem of a copy without a row in the ledger."""

    @classmethod
    def folder_of(cls, value: str) -> str:
        """The folder of the copies for a value of `column`: a run, a version's name, an artifact,
        or an alias.
        """
        part = value.removeprefix("sha256:").partition("@")[0]
        return f"{cls.folder}/{part or WHOLE_LEDGER}"

    @classmethod
    def describe_row(cls, name: str, columns: LedgerColumns) -> str:
        """The name of an unverified row in a problem."""
        subject = f"{columns.subject} of run {columns.run}" if columns.run else columns.subject
        return f"the {cls.noun or cls.kind} {name} of {subject}"

    def describe(self, name: str) -> str:
        """The name of a verified statement in a problem."""
        return self.describe_row(name, self.columns)

    def is_of(self, value: str) -> bool:
        """Whether its column holds this value."""
        return bool(getattr(self.columns, self.column) == value)

    @property
    def path(self) -> str:
        """The name of its row and of its copy."""
        folder = self.folder_of(getattr(self.columns, self.column))
        return f"{folder}/{self.digest.removeprefix('sha256:')}.dsse.json"

    def path_of(self, envelope: bytes) -> str:  # noqa: ARG002 - for a kind that is named by it
        """The name of a signed one."""
        return self.path

    @property
    @abstractmethod
    def columns(self) -> LedgerColumns:
        """The columns of its row."""

    @property
    @abstractmethod
    def subject_digest(self) -> Digest:
        """The digest of its subject."""

    @property
    def subject_name(self) -> str:
        """The name of its subject, for people."""
        return self.columns.subject

    @property
    def predicate(self) -> dict[str, JsonValue]:
        """The predicate of the statement."""
        own = self.model_dump(mode="json")
        return {self.field: own} if self.field else own


class StepRecord(SignedRecord):
    """A step's statement about its own work; of equal statements, the first one is kept.

    Registries and stores have other writers. The signed statement is in the ledger, so that a
    missing version or report is noticed.
    """

    signer: ClassVar[Literal["service", "step"]] = "step"

    @property
    @abstractmethod
    def same(self) -> tuple[object, ...]:
        """The key that equal statements share."""


Declare = Callable[[SignedRecord], Attestation]
"""Signs a record; the caller stores the attestation, which makes it effective."""


@cache
def statement_kinds() -> dict[str, type[SignedRecord]]:
    """All kinds by their names."""
    return {name: _KINDS.find(name) for name in _KINDS.names}
