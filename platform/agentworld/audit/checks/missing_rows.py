"""What the second store holds and a ledger does not, any more."""

from contextlib import suppress
from typing import Protocol

from agentworld.audit.checks.losses import lost_by_any, lost_logs, lost_statements
from agentworld.errors import NotFound
from agentworld.ledger.aliases import Aliases
from agentworld.ledger.attestations import Attestations
from agentworld.records.alias import AliasChange
from agentworld.records.base import Record
from agentworld.records.declaration import ADOPTION, Adoption, Restore, alias_entries
from agentworld.signing.declaration import verify_declared
from agentworld.signing.keys import TrustedKeys
from agentworld.storage.objects import WriteOnce


class Restored(Protocol):
    """What is asked of a ledger in whose place a backup was put."""

    @property
    def aliases(self) -> Aliases:
        """People's names for simulators."""
        ...

    @property
    def attestations(self) -> Attestations:
        """What was signed beside the logs of runs."""
        ...

    def log_lengths(self) -> dict[str, int]:
        """How long the log of each run is."""
        ...


class Missing(Record):
    """What a restored ledger does not have, by the names of its copies."""

    runs: dict[str, tuple[str, ...]]
    """Of runs that lost entries, or are gone."""
    others: tuple[str, ...]
    """What was signed beside the logs."""

    def declarations(self, reason: str, by: str, at: str) -> list[Restore]:
        """One for each run, and one for all else."""
        lost = [*self.runs.items(), *([("", self.others)] if self.others else [])]
        fields = {"reason": reason, "by": by, "at": at}
        return [Restore(run=run, lost=names, **fields) for run, names in lost]


def missing(ledger: Restored, second_store: WriteOnce, trusted: TrustedKeys) -> Missing:
    """Without what was declared to be lost already. Nothing is written."""
    # In this order: what a service adds meanwhile is in the ledger before it has a copy.
    names = second_store.names()
    changes = tuple[AliasChange, ...]()
    with suppress(NotFound):  # nobody has signed yet what the ledger holds
        changes = verify_declared(second_store.get(ADOPTION), Adoption, trusted).changes
    adopted = [entry.name for entry in alias_entries(changes)]
    declared = lost_by_any(ledger.attestations, trusted)
    ledger_names = ledger.attestations.names() | declared
    ledger_names |= {entry.name for entry in alias_entries(ledger.aliases.history())}
    runs: dict[str, tuple[str, ...]] = {}
    for run, name in lost_logs(names, ledger.log_lengths()):
        if name not in declared:
            runs[run] = (*runs.get(run, ()), name)
    others = lost_statements(dict.fromkeys([*names, *adopted]), ledger_names)
    return Missing(runs=runs, others=tuple(others))
