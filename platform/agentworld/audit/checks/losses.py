"""Records that a restored backup lacks, and those that are declared lost.

A declaration counts while the ledger keeps it. If an older backup is restored over it, a second
declaration is needed, which includes the losses of the first.
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
    """The losses that the verification of a run accepts."""
    declarations = evidence.read_declarations(attestations)
    checked = check_statements(Restore, attestations, evidence, of=run)
    own = checked.verified.values()  # one may have been declared in the meantime
    counted = [restore for restore in own if restore.path not in declarations.lost]
    names = declarations.lost.union(*(restore.lost for restore in counted))
    notes = tuple(
        f"declared lost on {restore.at}: {len(restore.lost)} of its signed copies"
        f" ({restore.reason})"
        for restore in counted
    )
    return Losses(names, notes, (*checked.problems, *declarations.problems))


def reappearance_problems(attestations: Attestations, evidence: Evidence) -> Iterator[str]:
    """Records that were declared lost but are in the ledger, because an old copy was put back."""
    lost_names = evidence.read_declarations(attestations).lost
    for row in attestations.all():
        if row.name in lost_names:
            yield f"the statement {row.name} was declared lost but is present; remove it"


def is_checkpoint(name: str) -> bool:
    """Whether a copy's name is that of a run's checkpoint."""
    return _CHECKPOINT.fullmatch(name) is not None


def _lost_logs(names: Iterable[str], lengths: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Names of checkpoints that cover more entries than the ledger has, each with its run."""
    for name in names:
        match = _CHECKPOINT.fullmatch(name)
        if match and int(match[2]) > lengths.get(match[1], 0):
            yield match[1], name


def _lost_statements(names: Iterable[str], ledger_names: set[str]) -> list[str]:
    """Names of other statements that the ledger lacks."""
    others = (name for name in names if not _CHECKPOINT.fullmatch(name))
    return [name for name in others if name.endswith(_STATEMENT) and name not in ledger_names]


class MissingRows(Record):
    """Records that a restored ledger lacks, by the names of their copies."""

    runs: dict[str, tuple[str, ...]]
    """The names by run, for runs that lost entries or are missing."""
    others: tuple[str, ...]
    """The names of lost statements that are not checkpoints."""

    def declarations(self, reason: str, by: str, at: str) -> list[Restore]:
        """One declaration for each run, and one for all others."""
        missing_names = [*self.runs.items(), *([("", self.others)] if self.others else [])]
        fields = {"reason": reason, "by": by, "at": at}
        return [Restore(run=run, lost=names, **fields) for run, names in missing_names]


def missing(ledger: Ledger, mirror: WriteOnce, trusted: TrustedKeys) -> MissingRows:
    """Missing records without those already declared lost. Writes nothing."""
    # In this order: what a service adds in the meantime is in the ledger before it has a copy.
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
