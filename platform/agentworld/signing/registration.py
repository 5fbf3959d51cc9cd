"""The content of a version, signed by the step that registered it.

A registry stores the statement beside the version's record: a writer to the registry can change
both, but cannot sign.
"""

from typing import Literal

from agentworld.errors import EvidenceError
from agentworld.records.base import Digest, Record
from agentworld.records.episode import text_bytes
from agentworld.signing.envelope import Statement, Subject, read_predicate, sign, verify
from agentworld.signing.keys import Signer, TrustedKeys

PREDICATE_TYPE = "urn:agentworld:registration:v1"


class Registration(Record):
    """An artifact was registered under a name, with this record of its origin."""

    name: str
    kind: Literal["world-model", "agent"]
    artifact: Digest
    record: Digest
    """The digest of the record's canonical JSON."""
    materials: tuple[Subject, ...]
    """Its origin: parents, data, recipes, and the evaluation report."""


def sign_registration(registration: Registration, signer: Signer) -> str:
    """A DSSE envelope for the registry."""
    return sign(_statement(registration), signer).decode()


def check_registration(registration: Registration, signature: str, trusted: TrustedKeys) -> None:
    """Raises EvidenceError unless a trusted key signed exactly this."""
    statement = verify(text_bytes(signature), trusted)
    signed = read_predicate(statement, Registration, "registration", _statement)
    if signed != registration:
        raise EvidenceError(
            f"what was signed is the record {signed.record} of {signed.artifact} as {signed.name},"
            f" and not {registration.record} of {registration.artifact} as {registration.name}"
        )


def _statement(registration: Registration) -> Statement:
    return Statement(
        subject=(Subject.of(registration.name, registration.artifact),),
        predicate_type=PREDICATE_TYPE,
        predicate=registration.model_dump(mode="json"),
    )
