"""What the platform declares of its own record, as it is signed and kept."""

from collections.abc import Iterable
from contextlib import suppress
from typing import TypeVar

from agentworld.errors import EvidenceError
from agentworld.records.attestation import Attestation
from agentworld.records.base import Digest
from agentworld.records.declaration import Declaration, Withdrawal
from agentworld.signing.envelope import sign, told_by, verify
from agentworld.signing.keys import Signer, TrustedKeys
from agentworld.signing.statement import Statement, Subject

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
    return told_by(verify(envelope, trusted), kind, kind.__name__, _statement)


def check_attested(kept: Attestation, kind: type[_Told], trusted: TrustedKeys) -> _Told:
    """The same of what a ledger keeps, whose columns have to say what was signed."""
    told = verify_declared(kept.envelope, kind, trusted)
    if (kept.name, kept.kind, kept[2:6]) != (told.name, told.kind, told.filed):
        raise EvidenceError("its row says something else than what was signed; restore it")
    return told


def withdrawn(kept: Iterable[Attestation], trusted: TrustedKeys) -> frozenset[Digest]:
    """What was signed of versions that people took away, by the withdrawals that verify."""
    found = set()
    for each in kept:
        with suppress(EvidenceError):  # which the audit says
            found.add(check_attested(each, Withdrawal, trusted).registered)
    return frozenset(found)


def _statement(told: Declaration) -> Statement:
    return Statement(
        subject=(Subject.of(told.filed.subject, told.meant),),
        predicate_type=told.predicate_type,
        predicate=told.model_dump(mode="json"),
    )
