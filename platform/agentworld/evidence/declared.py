"""What the platform declares of its own record, as it is signed and kept."""

from typing import TypeVar

from pydantic import ValidationError

from agentworld.errors import EvidenceError
from agentworld.evidence.envelope import sign, verify
from agentworld.evidence.keys import Signer, TrustedKeys
from agentworld.evidence.statement import Statement, Subject
from agentworld.records.attestation import Attestation
from agentworld.records.base import first_problem
from agentworld.records.declaration import Declaration

_Told = TypeVar("_Told", bound=Declaration)


def attested(told: Declaration, signer: Signer) -> Attestation:
    """A declaration, signed, as the ledger and the second store keep it."""
    filed = told.filed
    envelope = sign(_statement(told), signer)
    return Attestation(
        told.name, told.kind, filed.subject, filed.simulator, filed.run, filed.at, envelope
    )


def verify_declared(envelope: bytes, kind: type[_Told], trusted: TrustedKeys) -> _Told:
    """What one of the trusted keys signed; raises EvidenceError for anything else."""
    statement = verify(envelope, trusted)
    try:
        told = kind.model_validate(statement.predicate)
    except ValidationError as error:
        raise EvidenceError(
            f"what was signed is no {kind.__name__} ({first_problem(error)})"
        ) from error
    if statement != _statement(told):
        raise EvidenceError(
            f"what was signed is not what an {kind.__name__} says; do not rely on it"
        )
    return told


def check_attested(kept: Attestation, kind: type[_Told], trusted: TrustedKeys) -> _Told:
    """The same of what a ledger keeps, whose columns have to say what was signed."""
    told = verify_declared(kept.envelope, kind, trusted)
    if (kept.name, kept.kind, kept[2:6]) != (told.name, told.kind, told.filed):
        raise EvidenceError("its row says something else than what was signed; restore it")
    return told


def _statement(told: Declaration) -> Statement:
    return Statement(
        subject=(Subject.of(told.filed.subject, told.meant),),
        predicate_type=told.predicate_type,
        predicate=told.model_dump(mode="json"),
    )
