"""What a version stands for, as the step that registered it signs it.

A registry keeps the statement beside the version's record: who can write there can change both,
and sign neither.
"""

from typing import Literal

from agentworld.errors import EvidenceError
from agentworld.records.base import Digest, Record
from agentworld.records.episode import text_bytes
from agentworld.signing.envelope import Statement, Subject, read_predicate, sign, verify
from agentworld.signing.keys import Signer, TrustedKeys

PREDICATE_TYPE = "urn:agentworld:registration:v1"


class Registration(Record):
    """This artifact was registered under a name, with this record of where it came from."""

    name: str
    kind: Literal["world-model", "agent"]
    artifact: Digest
    record: Digest
    """Of the canonical JSON of the record."""
    materials: tuple[Subject, ...]
    """What it was made of: parents, data, recipes, and the report that it was judged by."""


def sign_registration(registration: Registration, signer: Signer) -> str:
    """A DSSE envelope, as a registry keeps it."""
    return sign(_statement(registration), signer).decode()


def check_registration(registration: Registration, signature: str, trusted: TrustedKeys) -> None:
    """Raises EvidenceError where no trusted key signed just this."""
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
