"""What a restored backup does not have, and which of it somebody declared to be lost.

A declaration counts while the ledger keeps it. Whoever restores an older backup over it declares
again, and what the first one named is then named by the second.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from agentworld.audit.checks.mirror import check_statements
from agentworld.audit.read.evidence import DeclarationReader, Evidence, Losses
from agentworld.errors import NotFound
from agentworld.ledger import Ledger
from agentworld.ledger.attestations import Attestations
from agentworld.records.base import Record
from agentworld.records.statements.alias import AliasChange, alias_entries
from agentworld.records.statements.genesis import GENESIS, Genesis
from agentworld.records.statements.restore import Restore
from agentworld.signing.envelope import verify_envelope
from agentworld.signing.keys import TrustedKeys
from agentworld.storage.objects import WriteOnce

_CHECKPOINT = re.compile(r"(\w+)/(\d{12})\.dsse\.json", re.ASCII)
_STATEMENT = ".dsse.json"


def lost_of(attestations: Attestations, evidence: Evidence, run: str) -> Losses:
    """What the verification of a run need not find in the ledger."""
    declarations = evidence.read_declarations(attestations)
    checked = check_statements(Restore, attestations, evidence, of=run)
    own = checked.verified.values()  # one may have been declared meanwhile
    counted = [restore for restore in own if restore.path not in declarations.lost]
    names = declarations.lost.union(*(restore.lost for restore in counted))
    notes = tuple(
        f"declared lost on {restore.at}: {len(restore.lost)} of its signed copies"
        f" ({restore.reason})"
        for restore in counted
    )
    return Losses(names, notes, (*checked.problems, *declarations.problems))


def reappearance_problems(attestations: Attestations, evidence: Evidence) -> Iterator[str]:
    """What was declared to be lost and is in the ledger: whoever kept an old copy put it back."""
    lost_names = evidence.read_declarations(attestations).lost
    for row in attestations.all():
        if row.name in lost_names:
            yield f"the statement {row.name} was declared to be lost and is there again; remove it"


def is_checkpoint(name: str) -> bool:
    """Whether a copy of a run's checkpoint is called so."""
    return _CHECKPOINT.fullmatch(name) is not None


def _lost_logs(names: Iterable[str], lengths: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Names of checkpoints that cover more entries than a ledger has, each after its run."""
    for name in names:
        match = _CHECKPOINT.fullmatch(name)
        if match and int(match[2]) > lengths.get(match[1], 0):
            yield match[1], name


def _lost_statements(names: Iterable[str], ledger_names: set[str]) -> list[str]:
    """Names of all other statements that a ledger does not have."""
    others = (name for name in names if not _CHECKPOINT.fullmatch(name))
    return [name for name in others if name.endswith(_STATEMENT) and name not in ledger_names]


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
    with suppress(NotFound):  # the ledger has no genesis yet
        changes = verify_envelope(mirror.get(GENESIS), Genesis, trusted).changes
    at_genesis = [entry.path for entry in alias_entries(changes)]
    lost_names = DeclarationReader(ledger.attestations, mirror, trusted).lost
    ledger_names = ledger.attestations.names() | lost_names
    ledger_names |= {entry.path for entry in alias_entries(ledger.aliases.history())}
    runs: dict[str, tuple[str, ...]] = {}
    for run, name in _lost_logs(names, ledger.logs.lengths()):
        if name not in lost_names:
            runs[run] = (*runs.get(run, ()), name)
    others = _lost_statements(dict.fromkeys([*names, *at_genesis]), ledger_names)
    return MissingRows(runs=runs, others=tuple(others))
