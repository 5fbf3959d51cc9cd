"""What a version stands for, as the step that registered it signs it.

A registry keeps the statement beside the version's record: who can write there can change both,
and sign neither.
"""

from typing import Literal

from agentworld.errors import EvidenceError
from agentworld.records.base import Digest, Record
from agentworld.records.episode import text_bytes
from agentworld.signing.envelope import sign, told_by, verify
from agentworld.signing.keys import Signer, TrustedKeys
from agentworld.signing.statement import Statement, Subject

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


def sign_registration(made: Registration, signer: Signer) -> str:
    """A DSSE envelope, as a registry keeps it."""
    return sign(_statement(made), signer).decode()


def check_registration(made: Registration, signature: str, trusted: TrustedKeys) -> None:
    """Raises EvidenceError where no trusted key signed just this."""
    statement = verify(text_bytes(signature), trusted)
    signed = told_by(statement, Registration, "registration", _statement)
    if signed != made:
        raise EvidenceError(
            f"what was signed is the record {signed.record} of {signed.artifact} as {signed.name},"
            f" and not {made.record} of {made.artifact} as {made.name}"
        )


def _statement(made: Registration) -> Statement:
    return Statement(
        subject=(Subject.of(made.name, made.artifact),),
        predicate_type=PREDICATE_TYPE,
        predicate=made.model_dump(mode="json"),
    )
