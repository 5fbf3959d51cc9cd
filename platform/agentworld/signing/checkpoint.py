"""A signed checkpoint of a run's log.

It covers every entry so far, and so every answered step, because entries name the heads of the
steps.
"""

from agentworld.records.base import Digest, Record
from agentworld.records.statements.edge import Traffic
from agentworld.signing.envelope import (
    Statement,
    Subject,
    read_predicate,
    read_unverified,
    sign,
    verify,
)
from agentworld.signing.keys import Signer, TrustedKeys

PREDICATE_TYPE = "urn:agentworld:run-checkpoint:v1"
_NOUN = "checkpoint of a run"


class RunCheckpoint(Record):
    """The length of a run's log, and the root of its Merkle tree."""

    run: str
    simulator: Digest
    length: int
    root: Digest
    traffic: Traffic
    """The traffic that these entries record."""


def sign_checkpoint(checkpoint: RunCheckpoint, signer: Signer) -> bytes:
    """A DSSE envelope; equal checkpoints of one key have equal bytes."""
    return sign(_statement(checkpoint), signer)


def verify_checkpoint(envelope: bytes, trusted: TrustedKeys) -> RunCheckpoint:
    """The checkpoint that a trusted key signed; raises EvidenceError for anything else."""
    return read_predicate(verify(envelope, trusted), RunCheckpoint, _NOUN, _statement)


def read_checkpoint(envelope: bytes, trusted: TrustedKeys) -> RunCheckpoint:
    """A checkpoint without trust in its key, for comparison; raises EvidenceError if a known key's
    signature is invalid.
    """
    return read_predicate(read_unverified(envelope, trusted), RunCheckpoint, _NOUN, _statement)


def checkpoint_name(run: str, length: int) -> str:
    """The name of a checkpoint's copy; names sort by length."""
    return f"{run}/{length:012d}.dsse.json"


def _statement(checkpoint: RunCheckpoint) -> Statement:
    return Statement(
        subject=(Subject.of(f"run {checkpoint.run}", checkpoint.root),),
        predicate_type=PREDICATE_TYPE,
        predicate=checkpoint.model_dump(mode="json"),
    )
