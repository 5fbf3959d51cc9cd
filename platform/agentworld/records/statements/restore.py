"""A restore of a backup; it is checked against the ledger, which must lack what was lost."""

from typing import ClassVar

from agentworld.records.base import Digest, Name, ShortText, digest_json
from agentworld.records.statements.base import (
    WHOLE_LEDGER,
    About,
    Column,
    LedgerColumns,
    SignedRecord,
)


class Restore(SignedRecord):
    """A backup replaced the ledger, which lacks the rows of these copies."""

    kind: ClassVar[str] = "restore"
    predicate_type: ClassVar[str] = "urn:agentworld:restore:v1"
    folder: ClassVar[str] = "ledger-restores"
    column: ClassVar[Column] = "run"
    about: ClassVar[About] = "run"
    missing_text: ClassVar[str] = "is gone from the ledger: an older one was put in its place"

    run: str
    """The run that lost entries and accepts no more; empty for losses outside of runs' logs."""
    lost: tuple[str, ...]
    """The names of the copies."""
    reason: ShortText
    by: Name
    at: str

    @classmethod
    def describe_row(cls, name: str, columns: LedgerColumns) -> str:  # noqa: ARG003
        """Describes it by its name, which contains its run."""
        return f"the restore {name}"

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(self.run or WHOLE_LEDGER, "", self.run, self.at)

    @property
    def subject_digest(self) -> Digest:
        return digest_json(list(self.lost))


KIND = Restore
