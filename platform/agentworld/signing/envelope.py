"""A signed statement: an in-toto Statement v1 in a DSSE envelope with one signature.

A statement makes a claim (a predicate) about subjects, each with a name for people and its digests.
The signature covers the payload and its type. An envelope is canonical JSON, so that no byte of it
can be changed; base64 alone has several encodings of some values. Records of all kinds are signed
in this form and stored as rows.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Annotated, Literal, TypeVar

import rfc8785
from pydantic import ConfigDict, Field, StringConstraints, ValidationError
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError

from agentworld.errors import EvidenceError
from agentworld.records.attestation import Attestation
from agentworld.records.base import Digest, JsonObject, Record, first_problem
from agentworld.records.garbled import reading
from agentworld.records.statements.base import SignedRecord
from agentworld.records.statements.withdrawal import Withdrawal
from agentworld.signing.keys import Signer, TrustedKeys

PAYLOAD_TYPE = "application/vnd.in-toto+json"

_Predicate = TypeVar("_Predicate", bound=Record)
_Signed = TypeVar("_Signed", bound=SignedRecord)
_Hexadecimal = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2})+$")]


class Subject(Record):
    """The subject of a statement."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    name: str
    digests: dict[str, _Hexadecimal] = Field(alias="digest", min_length=1)
    """By the name of the algorithm."""

    @classmethod
    def of(cls, name: str, digest: Digest) -> "Subject":
        """A subject with one sha256 digest."""
        algorithm, value = digest.split(":")
        return cls(name=name, digests={algorithm: value})


class Statement(Record):
    """A predicate of subjects; `canonical` is the form that is signed."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    statement_type: Literal["https://in-toto.io/Statement/v1"] = Field(
        "https://in-toto.io/Statement/v1", alias="_type"
    )
    subject: tuple[Subject, ...] = Field(min_length=1)
    predicate_type: str = Field(alias="predicateType", min_length=1)
    """A URI that defines the predicate's keys."""
    predicate: JsonObject = Field(min_length=1)

    @classmethod
    def parse(cls, data: bytes) -> "Statement":
        """Parses any JSON form; raises pydantic's ValidationError."""
        return cls.model_validate_json(data, by_name=False)


class _Signature(Record):
    keyid: str
    sig: str


class _Form(Record):
    payload: str
    payload_type: str = Field(alias="payloadType")
    signatures: tuple[_Signature, ...] = Field(min_length=1, max_length=1)


def sign(statement: Statement, signer: Signer) -> bytes:
    """The envelope of a statement, with the signer's signature and key id."""
    envelope = Envelope(statement.canonical, PAYLOAD_TYPE, {})
    envelope.sign(signer)
    return _encode(envelope)


def verify(envelope: bytes, trusted: TrustedKeys) -> Statement:
    """The statement that a trusted key signed; raises EvidenceError for anything else."""
    with reading("the envelope"):
        dsse_envelope = _parse(envelope)
        _check_signature(dsse_envelope, trusted)
        return _parse_statement(dsse_envelope)


def key_of(envelope: bytes) -> str:
    """The key id in an envelope; only `verify` checks that this key signed it."""
    (key,) = _parse(envelope).signatures
    return str(key)


def read_unverified(envelope: bytes, trusted: TrustedKeys) -> Statement:
    """The statement of any signer; checks the signatures of known keys.

    For comparison only. Raises EvidenceError like `verify`.
    """
    with reading("the envelope"):
        dsse_envelope = _parse(envelope)
        if trusted.keys() & dsse_envelope.signatures.keys():
            _check_signature(dsse_envelope, trusted)
        return _parse_statement(dsse_envelope)


def read_predicate(
    statement: Statement,
    kind: type[_Predicate],
    noun: str,
    to_statement: Callable[[_Predicate], Statement],
    field: str = "",
) -> _Predicate:
    """The record in a statement, if `to_statement` converts it back to the same statement.

    `field` is the predicate's key that holds it, if the predicate holds more. Raises EvidenceError
    for a statement about anything else; `noun` names the expected record in the message.
    """
    predicate = statement.predicate
    try:
        record = kind.model_validate(predicate.get(field) if field else predicate)
    except ValidationError as error:
        raise EvidenceError(
            f"the signed content is not of kind {noun} ({first_problem(error)}); do not rely on it"
        ) from error
    if statement != to_statement(record):
        raise EvidenceError(f"the signed content differs from this {noun}; do not rely on it")
    return record


def attest(record: SignedRecord, signer: Signer) -> Attestation:
    """Signs a record for the ledger and the evidence mirror."""
    return row_of(record, sign(_statement_of(record), signer))


def row_of(record: SignedRecord, envelope: bytes) -> Attestation:
    """The ledger's row of a record that is signed in this envelope."""
    return Attestation(record.path_of(envelope), record.kind, *record.columns, envelope)


def verify_envelope(envelope: bytes, kind: type[_Signed], trusted: TrustedKeys) -> _Signed:
    """The record that a trusted key signed; raises EvidenceError for anything else."""
    return _read_record(verify(envelope, trusted), kind)


def verify_copy(name: str, envelope: bytes, kind: type[_Signed], trusted: TrustedKeys) -> _Signed:
    """Like `verify_envelope`, for a copy in the evidence mirror under a name."""
    record = verify_envelope(envelope, kind, trusted)
    if record.path_of(envelope) != name:
        raise EvidenceError("it is the copy of another statement; find out where it came from")
    return record


def verify_row(row: Attestation, kind: type[_Signed], trusted: TrustedKeys) -> _Signed:
    """Like `verify_envelope`, for a ledger's row, whose columns must match the record."""
    record = verify_envelope(row.envelope, kind, trusted)
    if row != row_of(record, row.envelope):
        raise EvidenceError("its row differs from what was signed; restore it")
    return record


def signed_at(envelope: bytes, kind: type[SignedRecord]) -> str:
    """The unverified signed time; raises EvidenceError if there is none."""
    return _read_record(read_unverified(envelope, {}), kind).columns.at


def find_withdrawn(attestations: Iterable[Attestation], trusted: TrustedKeys) -> frozenset[Digest]:
    """The withdrawn versions, by the verified withdrawals."""
    digests = set()
    for attestation in attestations:
        with suppress(EvidenceError):  # the audit reports it
            digests.add(verify_row(attestation, Withdrawal, trusted).registered)
    return frozenset(digests)


def _read_record(statement: Statement, kind: type[_Signed]) -> _Signed:
    return read_predicate(statement, kind, kind.noun or kind.kind, _statement_of, field=kind.field)


def _statement_of(record: SignedRecord) -> Statement:
    return Statement(
        subject=(Subject.of(record.subject_name, record.subject_digest),),
        predicate_type=record.predicate_type,
        predicate=record.predicate,
    )


def _parse_statement(envelope: Envelope) -> Statement:
    try:
        return Statement.parse(envelope.payload)
    except ValidationError as error:
        raise EvidenceError(
            f"the signed content is not an in-toto statement ({first_problem(error)}); do not"
            " rely on it"
        ) from error


def _parse(data: bytes) -> Envelope:
    try:
        envelope = Envelope.from_dict(_Form.model_validate_json(data).model_dump())
    except ValidationError as error:
        raise _no_envelope(first_problem(error)) from error
    except ValueError as error:
        raise _no_envelope(str(error)) from error
    if _encode(envelope) != data:
        raise _no_envelope("it is not in canonical form")
    return envelope


def _check_signature(envelope: Envelope, trusted: TrustedKeys) -> None:
    (key_id,) = envelope.signatures
    if envelope.payload_type != PAYLOAD_TYPE:
        raise EvidenceError(
            f"the envelope's type is {envelope.payload_type!r} instead of {PAYLOAD_TYPE}; do not"
            " rely on it"
        )
    if key_id not in trusted:
        raise EvidenceError(
            f"the key {key_id!r} is not trusted; add its public key if you trust it, or do not"
            " rely on the record"
        )
    try:
        envelope.verify([trusted[key_id]], threshold=1)
    except UnverifiedSignatureError as error:
        raise EvidenceError(
            f"the signature is not that of the key {key_id}; the record was changed, restore it"
        ) from error


def _encode(envelope: Envelope) -> bytes:
    return rfc8785.dumps(envelope.to_dict())


def _no_envelope(problem: str) -> EvidenceError:
    return EvidenceError(f"this is not an envelope of ours ({problem}); read it as it was stored")
