"""What the evidence mirror holds and a ledger does not, any more."""

from contextlib import suppress

from agentworld.audit.checks.losses import lost_logs, lost_statements
from agentworld.audit.read.declarations import DeclarationReader
from agentworld.errors import NotFound
from agentworld.ledger import Ledger
from agentworld.records.alias import AliasChange
from agentworld.records.base import Record
from agentworld.records.statements.alias import alias_entries
from agentworld.records.statements.genesis import GENESIS, Genesis
from agentworld.records.statements.restore import Restore
from agentworld.signing.attestation import verify_envelope
from agentworld.signing.keys import TrustedKeys
from agentworld.storage.objects import WriteOnce


class MissingRows(Record):
    """What a restored ledger does not have, by the names of its copies."""

    runs: dict[str, tuple[str, ...]]
    """Of runs that lost entries, or are gone."""
    others: tuple[str, ...]
    """What was signed beside the logs."""

    def declarations(self, reason: str, by: str, at: str) -> list[Restore]:
        """One for each run, and one for all else."""
        missing_names = [*self.runs.items(), *([("", self.others)] if self.others else [])]
        fields = {"reason": reason, "by": by, "at": at}
        return [Restore(run=run, lost=names, **fields) for run, names in missing_names]


def missing(ledger: Ledger, mirror: WriteOnce, trusted: TrustedKeys) -> MissingRows:
    """Without what was declared to be lost already. Nothing is written."""
    # In this order: what a service adds meanwhile is in the ledger before it has a copy.
    names = mirror.names()
    changes = tuple[AliasChange, ...]()
    with suppress(NotFound):  # nobody has signed yet what the ledger holds
        changes = verify_envelope(mirror.get(GENESIS), Genesis, trusted).changes
    at_genesis = [entry.path for entry in alias_entries(changes)]
    lost_names = DeclarationReader(ledger.attestations, mirror, trusted).lost
    ledger_names = ledger.attestations.names() | lost_names
    ledger_names |= {entry.path for entry in alias_entries(ledger.aliases.history())}
    runs: dict[str, tuple[str, ...]] = {}
    for run, name in lost_logs(names, ledger.logs.lengths()):
        if name not in lost_names:
            runs[run] = (*runs.get(run, ()), name)
    others = lost_statements(dict.fromkeys([*names, *at_genesis]), ledger_names)
    return MissingRows(runs=runs, others=tuple(others))
