"""What a restored backup does not have, and which of it somebody declared to be lost.

A declaration counts while the ledger keeps it. Whoever restores an older backup over it declares
again, and what the first one named is then named by the second.
"""

import re
from collections.abc import Iterable, Iterator

from agentworld.audit.checks.mirror import check_statements
from agentworld.audit.read.declarations import Losses
from agentworld.audit.read.evidence import Evidence
from agentworld.ledger.attestations import Attestations
from agentworld.records.statements.restore import Restore

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
