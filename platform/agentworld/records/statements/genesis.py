"""The state of a ledger before its changes were signed; it identifies the ledger of an evidence
mirror.
"""

from typing import ClassVar

from agentworld.records.base import Digest
from agentworld.records.statements.alias import AliasChange
from agentworld.records.statements.base import WHOLE_LEDGER, LedgerColumns, SignedRecord

GENESIS = "ledger-genesis/genesis.dsse.json"
"""The fixed name of a ledger's only genesis."""


class Genesis(SignedRecord):
    """The unsigned state of a ledger when signing of its changes began."""

    kind: ClassVar[str] = "genesis"
    predicate_type: ClassVar[str] = "urn:agentworld:ledger-genesis:v1"
    folder: ClassVar[str] = "ledger-genesis"

    changes: tuple[AliasChange, ...]
    """The changes of all aliases, in their order."""
    erased: tuple[str, ...]
    """Episodes whose texts were erased."""
    at: str

    @classmethod
    def describe_row(cls, name: str, columns: LedgerColumns) -> str:  # noqa: ARG003
        """The description is fixed, because there is only one."""
        return "what the ledger held unsigned"

    @property
    def path(self) -> str:
        return GENESIS

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(WHOLE_LEDGER, "", "", self.at)

    @property
    def subject_digest(self) -> Digest:
        return self.digest


KIND = Genesis
