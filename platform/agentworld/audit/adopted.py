"""What a ledger held, unsigned, when its changes began to be signed."""

from agentworld.audit.evidence import Evidence
from agentworld.errors import EvidenceError, NotFound
from agentworld.evidence.declared import check_attested, verify_declared
from agentworld.ledger.attestations import Attestations
from agentworld.records.declaration import ADOPTION, Adoption


def adoption_of(told: Attestations, evidence: Evidence) -> Adoption | None:
    """As the second store has it, else the ledger; null where no service of today ever came.

    Raises EvidenceError where no trusted key signed it.
    """
    try:
        return verify_declared(evidence.second_store.get(ADOPTION), Adoption, evidence.trusted)
    except NotFound:
        kept = told.find("adoption")
    return verify_declared(kept[0].envelope, Adoption, evidence.trusted) if kept else None


def adoption_problems(told: Attestations, evidence: Evidence) -> list[str]:
    """What is wrong with the ledger's own copy of it."""
    kept = told.find("adoption")
    try:
        copies = [evidence.second_store.get(ADOPTION)]
        adoption_of(told, evidence)
        for each in kept:
            check_attested(each, Adoption, evidence.trusted)
    except NotFound:
        return []  # on its way
    except EvidenceError as error:
        return [f"what the ledger held unsigned does not verify: {error}"]
    if [each.envelope for each in kept] != copies:
        return ["the ledger tells otherwise what it held unsigned"]
    return []
