"""Statements as they are signed and kept: a record of any kind in an envelope, with its row."""

from collections.abc import Iterable
from contextlib import suppress
from typing import TypeVar

from agentworld.errors import EvidenceError
from agentworld.records.attestation import Attestation
from agentworld.records.base import Digest
from agentworld.records.statements.base import SignedRecord
from agentworld.records.statements.withdrawal import Withdrawal
from agentworld.signing.envelope import read_predicate, read_unverified, sign, verify
from agentworld.signing.keys import Signer, TrustedKeys
from agentworld.signing.statement import Statement, Subject

_Signed = TypeVar("_Signed", bound=SignedRecord)


def attest(record: SignedRecord, signer: Signer) -> Attestation:
    """A record, signed, as the ledger and the evidence mirror keep it."""
    return row_of(record, sign(_statement(record), signer))


def row_of(record: SignedRecord, envelope: bytes) -> Attestation:
    """What a ledger keeps of a record that was signed in this envelope."""
    return Attestation(record.path_of(envelope), record.kind, *record.columns, envelope)


def verify_envelope(envelope: bytes, kind: type[_Signed], trusted: TrustedKeys) -> _Signed:
    """What one of the trusted keys signed; raises EvidenceError for anything else."""
    return _read(verify(envelope, trusted), kind)


def verify_copy(name: str, envelope: bytes, kind: type[_Signed], trusted: TrustedKeys) -> _Signed:
    """The same of what the evidence mirror keeps under a name."""
    record = verify_envelope(envelope, kind, trusted)
    if record.path_of(envelope) != name:
        raise EvidenceError("it is the copy of another statement; find out who put it there")
    return record


def verify_row(row: Attestation, kind: type[_Signed], trusted: TrustedKeys) -> _Signed:
    """The same of what a ledger keeps, whose columns have to say what was signed."""
    record = verify_envelope(row.envelope, kind, trusted)
    if row != row_of(record, row.envelope):
        raise EvidenceError("its row says something else than what was signed; restore it")
    return record


def signed_at(envelope: bytes, kind: type[SignedRecord]) -> str:
    """When it was signed by its own words, whoever signed it; raises EvidenceError for no words."""
    return _read(read_unverified(envelope, {}), kind).columns.at


def find_withdrawn(attestations: Iterable[Attestation], trusted: TrustedKeys) -> frozenset[Digest]:
    """What was signed of versions that people took away, by the withdrawals that verify."""
    digests = set()
    for attestation in attestations:
        with suppress(EvidenceError):  # which the audit says
            digests.add(verify_row(attestation, Withdrawal, trusted).registered)
    return frozenset(digests)


def _read(statement: Statement, kind: type[_Signed]) -> _Signed:
    return read_predicate(statement, kind, kind.noun or kind.kind, _statement, field=kind.field)


def _statement(record: SignedRecord) -> Statement:
    return Statement(
        subject=(Subject.of(record.subject_name, record.subject_digest),),
        predicate_type=record.predicate_type,
        predicate=record.predicate,
    )
