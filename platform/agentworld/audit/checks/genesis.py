"""What a ledger held, unsigned, when its changes began to be signed."""

from agentworld.audit.read.declarations import read_copy
from agentworld.audit.read.evidence import Evidence
from agentworld.errors import EvidenceError, NotFound
from agentworld.ledger.attestations import Attestations
from agentworld.records.declaration import GENESIS, Genesis
from agentworld.signing.declaration import check_attested, verify_declared


def genesis_problems(attestations: Attestations, evidence: Evidence) -> list[str]:
    """What is wrong with the ledger's own copy of it."""
    rows = attestations.find("genesis")
    try:
        copies = [read_copy(GENESIS, evidence.mirror)]
        verify_declared(copies[0], Genesis, evidence.trusted)
        for row in rows:
            check_attested(row, Genesis, evidence.trusted)
    except NotFound:
        return []  # on its way
    except EvidenceError as error:
        return [f"what the ledger held unsigned does not verify: {error}"]
    if [row.envelope for row in rows] != copies:
        return ["the ledger tells otherwise what it held unsigned"]
    return []
