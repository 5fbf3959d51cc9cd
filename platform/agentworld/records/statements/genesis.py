"""What a ledger held before its changes were signed; it names the ledger of an evidence mirror."""

from typing import ClassVar

from agentworld.records.base import Digest
from agentworld.records.statements.alias import AliasChange
from agentworld.records.statements.base import WHOLE_LEDGER, LedgerColumns, SignedRecord

GENESIS = "ledger-genesis/genesis.dsse.json"
"""The one name of a genesis: a ledger has one."""


class Genesis(SignedRecord):
    """What a ledger held when its changes began to be signed: none of it was signed before."""

    kind: ClassVar[str] = "genesis"
    predicate_type: ClassVar[str] = "urn:agentworld:ledger-genesis:v1"
    folder: ClassVar[str] = "ledger-genesis"

    changes: tuple[AliasChange, ...]
    """Of all aliases, in their order."""
    erased: tuple[str, ...]
    """Episodes whose texts were gone."""
    at: str

    @classmethod
    def describe_row(cls, name: str, columns: LedgerColumns) -> str:  # noqa: ARG003
        """There is one."""
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
