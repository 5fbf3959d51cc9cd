"""What lies in the evidence mirror and tells of nothing: no service of ours puts it there."""

from collections.abc import Container, Iterator

from agentworld.audit.checks.losses import is_checkpoint
from agentworld.audit.read.evidence import Evidence
from agentworld.ledger.attestations import Attestations
from agentworld.records.statements.base import WHOLE_LEDGER, statement_kinds

_ADVICE = "find out who put it there, and remove it"


def orphan_problems(
    attestations: Attestations, runs: Container[str], evidence: Evidence
) -> Iterator[str]:
    """A sentence for each; `runs` are those that were verified."""
    for name in evidence.mirror.orphans():
        yield f"the evidence mirror has {name!r}, which no copy is called; {_ADVICE}"
    # The names first: what is copied meanwhile is in the ledger before.
    names = evidence.mirror.names()
    ledger_names = attestations.names() | evidence.read_declarations(attestations).lost
    for name in names:
        if name not in ledger_names and not _is_compared(name, runs):
            yield f"the evidence mirror has {name}, which tells of nothing in the ledger; {_ADVICE}"


def _is_compared(name: str, runs: Container[str]) -> bool:
    folder, *below = name.split("/")
    kind = next((kind for kind in statement_kinds().values() if kind.folder == folder), None)
    if kind and kind.about == "run":
        return len(below) > 1 and (below[0] in runs or below[0] == WHOLE_LEDGER)
    return bool(below) and (kind is not None or folder in runs or is_checkpoint(name))
