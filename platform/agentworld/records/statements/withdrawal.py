"""A withdrawal of a version; it is checked against the registry, which does not have it."""

from typing import ClassVar

from agentworld.records.base import Digest, Name, ShortText
from agentworld.records.statements.base import About, LedgerColumns, SignedRecord


class Withdrawal(SignedRecord):
    """People took a registered version away: it is not missed any more."""

    kind: ClassVar[str] = "withdrawal"
    predicate_type: ClassVar[str] = "urn:agentworld:withdrawal:v1"
    folder: ClassVar[str] = "withdrawn-versions"
    about: ClassVar[About] = "version"

    version: str
    """NAME@VERSION."""
    artifact: Digest
    registered: Digest
    """Of what was signed when it was registered, which does not count from now on."""
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
