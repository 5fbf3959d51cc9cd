"""A signed statement: a DSSE envelope with one signature, as JSON in one form.

The signature covers the payload and its type. The form is canonical, so that no byte of an
envelope can be exchanged for another: base64 alone would let a few.
"""

from collections.abc import Callable
from typing import TypeVar

import rfc8785
from pydantic import Field, ValidationError
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError

from agentworld.errors import EvidenceError
from agentworld.records.base import Record, first_problem
from agentworld.records.garbled import reading
from agentworld.signing.keys import Signer, TrustedKeys
from agentworld.signing.statement import Statement

PAYLOAD_TYPE = "application/vnd.in-toto+json"

_Predicate = TypeVar("_Predicate", bound=Record)


class _Signature(Record):
    keyid: str
    sig: str


class _Form(Record):
    payload: str
    payload_type: str = Field(alias="payloadType")
    signatures: tuple[_Signature, ...] = Field(min_length=1, max_length=1)


def sign(statement: Statement, signer: Signer) -> bytes:
    """The envelope of a statement, with the signer's signature and the id of its key."""
    envelope = Envelope(statement.canonical, PAYLOAD_TYPE, {})
    envelope.sign(signer)
    return _encode(envelope)


def verify(envelope: bytes, trusted: TrustedKeys) -> Statement:
    """The statement that one of the trusted keys signed; raises EvidenceError for any other."""
    with reading("the envelope"):
        dsse_envelope = _read(envelope)
        _check_signature(dsse_envelope, trusted)
        return _statement(dsse_envelope)


def key_of(envelope: bytes) -> str:
    """The id of the key that an envelope names; `verify` says whether that key signed it."""
    (key,) = _read(envelope).signatures
    return str(key)


def read_unverified(envelope: bytes, trusted: TrustedKeys) -> Statement:
    """The statement, whoever signed it; of the known keys it is checked that they did.

    For comparing, and not for relying on it. Raises EvidenceError like `verify`.
    """
    with reading("the envelope"):
        dsse_envelope = _read(envelope)
        if trusted.keys() & dsse_envelope.signatures.keys():
            _check_signature(dsse_envelope, trusted)
        return _statement(dsse_envelope)


def read_predicate(
    statement: Statement,
    kind: type[_Predicate],
    noun: str,
    to_statement: Callable[[_Predicate], Statement],
    field: str = "",
) -> _Predicate:
    """What a statement says, where `to_statement` makes this very statement of it.

    `field` is the key of the predicate that holds it, where that holds more. Raises EvidenceError
    for a statement of anything else, and calls what is wanted by its `noun`.
    """
    predicate = statement.predicate
    try:
        record = kind.model_validate(predicate.get(field) if field else predicate)
    except ValidationError as error:
        raise EvidenceError(
            f"what was signed is no {noun} ({first_problem(error)}); do not rely on it"
        ) from error
    if statement != to_statement(record):
        raise EvidenceError(f"what was signed is not what this {noun} says; do not rely on it")
    return record


def _statement(envelope: Envelope) -> Statement:
    try:
        return Statement.parse(envelope.payload)
    except ValidationError as error:
        raise EvidenceError(
            f"what was signed is no in-toto statement ({first_problem(error)}); do not rely on it"
        ) from error


def _read(data: bytes) -> Envelope:
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
            f"the envelope holds {envelope.payload_type!r} and no {PAYLOAD_TYPE}; do not rely on it"
        )
    if key_id not in trusted:
        raise EvidenceError(
            f"the key {key_id!r} is not trusted; add its public key if it is, or do not rely on"
            " the record"
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
    return EvidenceError(f"this is no envelope of ours ({problem}); read it as it was stored")
