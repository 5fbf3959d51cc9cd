"""A withdrawal of a version; it is checked against the registry, which must lack the version."""

from typing import ClassVar

from agentworld.records.base import Digest, Name, ShortText
from agentworld.records.statements.base import About, LedgerColumns, SignedRecord


class Withdrawal(SignedRecord):
    """A registered version was deleted on purpose; the audit no longer reports it as missing."""

    kind: ClassVar[str] = "withdrawal"
    predicate_type: ClassVar[str] = "urn:agentworld:withdrawal:v1"
    folder: ClassVar[str] = "withdrawn-versions"
    about: ClassVar[About] = "version"

    version: str
    """NAME@VERSION."""
    artifact: Digest
    registered: Digest
    """The digest of its registration, which no longer counts."""
    reason: ShortText
    by: Name
    at: str

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(self.version, "", "", self.at)

    @property
    def subject_digest(self) -> Digest:
        return self.artifact


KIND = Withdrawal
