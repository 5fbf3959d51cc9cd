"""What a restored backup does not have, and which of it somebody declared to be lost.

A declaration counts while the ledger keeps it. Whoever restores an older backup over it declares
again, and what the first one named is then named by the second.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agentworld.audit.read.declarations import Restores
from agentworld.audit.read.evidence import Evidence, copies_of
from agentworld.ledger.attestations import Attestations
from agentworld.records.declaration import RESTORES, WHOLE_LEDGER
from agentworld.signing.keys import TrustedKeys

_CHECKPOINT = re.compile(r"(\w+)/(\d{12})\.dsse\.json", re.ASCII)
_STATEMENT = ".dsse.json"


class Losses(NamedTuple):
    """What was declared to be lost, of a run or of all that is no run's log."""

    names: frozenset[str] = frozenset()
    """Of copies in the evidence mirror that the ledger need not know."""
    notes: tuple[str, ...] = ()
    """What was declared, for people."""
    problems: tuple[str, ...] = ()
    """Of declarations that do not hold."""


def lost_of(attestations: Attestations, evidence: Evidence, run: str = "") -> Losses:
    """What a verification of a run, or of what is no run's, need not find in the ledger."""
    copies = copies_of(f"{RESTORES}/{run or WHOLE_LEDGER}", evidence.mirror)
    declarations = evidence.read_declarations(attestations)
    own = declarations.restores_of(run)
    if copies.keys() - {row.name for row in own}:  # one may have been declared meanwhile
        own = attestations.find("restore", run=run)
    restores = Restores.of(own, evidence.trusted)
    whole = declarations.restores if run else Restores()
    counted = [restore for restore in restores.counted if restore.name not in whole.names]
    names = whole.names.union(*(restore.lost for restore in counted)) if counted else whole.names
    problems = [*restores.problems, *whole.problems]
    rows = {row.name: row.envelope for row in own}
    for name, envelope in copies.items():
        if rows.get(name, envelope) != envelope:
            problems.append(f"the restore {name} is another one in the evidence mirror")
        elif name not in rows and name not in names:
            problems.append(
                f"the restore {name} is gone from the ledger: an older one was put in its place"
            )
    notes = tuple(
        f"declared lost on {restore.at}: {len(restore.lost)} of its signed copies"
        f" ({restore.reason})"
        for restore in counted
    )
    return Losses(names, notes, tuple(problems))


def lost_by_any(attestations: Attestations, trusted: TrustedKeys) -> frozenset[str]:
    """Every name that a declaration counts as lost."""
    return Restores.of(attestations.find("restore"), trusted).names


def reappearance_problems(attestations: Attestations, trusted: TrustedKeys) -> Iterator[str]:
    """What was declared to be lost and is in the ledger: whoever kept an old copy put it back."""
    lost_names = lost_by_any(attestations, trusted)
    for row in attestations.all():
        if row.name in lost_names:
            yield f"the statement {row.name} was declared to be lost and is there again; remove it"


def is_checkpoint(name: str) -> bool:
    """Whether a copy of a run's checkpoint is called so."""
    return _CHECKPOINT.fullmatch(name) is not None


def lost_logs(names: Iterable[str], lengths: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Names of checkpoints that cover more entries than a ledger has, each after its run."""
    for name in names:
        match = _CHECKPOINT.fullmatch(name)
        if match and int(match[2]) > lengths.get(match[1], 0):
            yield match[1], name


def lost_statements(names: Iterable[str], ledger_names: set[str]) -> list[str]:
    """Names of all other statements that a ledger does not have."""
    others = (name for name in names if not _CHECKPOINT.fullmatch(name))
    return [name for name in others if name.endswith(_STATEMENT) and name not in ledger_names]
