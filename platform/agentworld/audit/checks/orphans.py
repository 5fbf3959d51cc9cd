"""What lies in the evidence mirror and tells of nothing: no service of ours puts it there."""

from collections.abc import Container, Iterator

from agentworld.audit.checks.losses import is_checkpoint, lost_by_any
from agentworld.audit.read.evidence import Evidence
from agentworld.ledger.attestations import Attestations
from agentworld.records.declaration import (
    ALIAS_CHANGES,
    ERASURES,
    GENESIS,
    RESTORES,
    WHOLE_LEDGER,
    Withdrawal,
)
from agentworld.records.step_statement import STEP_STATEMENTS
from agentworld.signing.agent_use import AGENT_USES
from agentworld.statements.signer import EDGES

_COMPARED = {
    EDGES,
    AGENT_USES,
    ALIAS_CHANGES,
    *(kind.folder for kind in (*STEP_STATEMENTS.values(), Withdrawal)),
}
"""Folders of which every copy is held against the ledger's rows."""
_BY_RUN = (ERASURES, RESTORES)
"""Folders of folders, each held against the rows of the run that it is called by."""
_ADVICE = "find out who put it there, and remove it"


def orphan_problems(
    attestations: Attestations, runs: Container[str], evidence: Evidence
) -> Iterator[str]:
    """A sentence for each; `runs` are those that were verified."""
    for name in evidence.mirror.orphans():
        yield f"the evidence mirror has {name!r}, which no copy is called; {_ADVICE}"
    # The names first: what is copied meanwhile is in the ledger before.
    names = evidence.mirror.names()
    ledger_names = attestations.names() | lost_by_any(attestations, evidence.trusted) | {GENESIS}
    for name in names:
        if name not in ledger_names and not _is_compared(name, runs):
            yield f"the evidence mirror has {name}, which tells of nothing in the ledger; {_ADVICE}"


def _is_compared(name: str, runs: Container[str]) -> bool:
    folder, *below = name.split("/")
    if folder in _BY_RUN:
        return len(below) > 1 and (below[0] in runs or below[0] == WHOLE_LEDGER)
    return bool(below) and (folder in _COMPARED or folder in runs or is_checkpoint(name))
