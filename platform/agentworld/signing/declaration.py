"""What the platform declares of its own record, as it is signed and kept."""

from collections.abc import Iterable
from contextlib import suppress
from typing import TypeVar

from agentworld.errors import EvidenceError
from agentworld.records.attestation import Attestation
from agentworld.records.base import Digest
from agentworld.records.declaration import Declaration, Withdrawal
from agentworld.signing.envelope import read_predicate, sign, verify
from agentworld.signing.keys import Signer, TrustedKeys
from agentworld.signing.statement import Statement, Subject

_Declaration = TypeVar("_Declaration", bound=Declaration)


def attest(declaration: Declaration, signer: Signer) -> Attestation:
    """A declaration, signed, as the ledger and the evidence mirror keep it."""
    columns = declaration.columns
    envelope = sign(_statement(declaration), signer)
    return Attestation(
        declaration.name,
        declaration.kind,
        columns.subject,
        columns.simulator,
        columns.run,
        columns.at,
        envelope,
    )


def verify_declared(
    envelope: bytes, kind: type[_Declaration], trusted: TrustedKeys
) -> _Declaration:
    """What one of the trusted keys signed; raises EvidenceError for anything else."""
    return read_predicate(verify(envelope, trusted), kind, kind.kind, _statement)


def check_attested(
    attestation: Attestation, kind: type[_Declaration], trusted: TrustedKeys
) -> _Declaration:
    """The same of what a ledger keeps, whose columns have to say what was signed."""
    declaration = verify_declared(attestation.envelope, kind, trusted)
    if (attestation.name, attestation.kind, attestation[2:6]) != (
        declaration.name,
        declaration.kind,
        declaration.columns,
    ):
        raise EvidenceError("its row says something else than what was signed; restore it")
    return declaration


def find_withdrawn(attestations: Iterable[Attestation], trusted: TrustedKeys) -> frozenset[Digest]:
    """What was signed of versions that people took away, by the withdrawals that verify."""
    digests = set()
    for attestation in attestations:
        with suppress(EvidenceError):  # which the audit says
            digests.add(check_attested(attestation, Withdrawal, trusted).registered)
    return frozenset(digests)


def _statement(declaration: Declaration) -> Statement:
    return Statement(
        subject=(Subject.of(declaration.columns.subject, declaration.subject_digest),),
        predicate_type=declaration.predicate_type,
        predicate=declaration.model_dump(mode="json"),
    )
