"""What was signed of versions and of agents, as the ledger and the evidence mirror have it: that
they were registered, validated, withdrawn.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from agentworld.audit.checks.losses import lost_by_any
from agentworld.audit.read.at_time import is_signed_as_of
from agentworld.audit.read.evidence import Evidence, copies_of
from agentworld.errors import EvidenceError
from agentworld.ledger.attestations import Attestations
from agentworld.records.attestation import Attestation
from agentworld.records.base import Digest
from agentworld.records.declaration import DECLARATIONS, SubjectDeclaration
from agentworld.records.step_statement import RegisteredVersion, Validation
from agentworld.signing.declaration import check_attested, find_withdrawn, verify_declared
from agentworld.signing.keys import TrustedKeys

_Statement = TypeVar("_Statement", bound=SubjectDeclaration)


class Registrations(NamedTuple):
    """What was signed of versions when they were registered, the oldest first."""

    counted: tuple[RegisteredVersion, ...] = ()
    withdrawn: tuple[RegisteredVersion, ...] = ()
    """Of those that people took away."""

    @property
    def newest(self) -> RegisteredVersion | None:
        """Null for a version that was registered before this was signed."""
        return next(reversed(self.counted), None)

    @property
    def withdrawn_keys(self) -> set[tuple[str, Digest, str]]:
        """Name, artifact and run of what was taken away, and was not registered again since."""
        parts = ((self.counted, False), (self.withdrawn, True))
        events = [(statement, is_withdrawn) for part, is_withdrawn in parts for statement in part]
        events.sort(key=lambda event: event[0].at)
        newest = {(e.registered_as, e.artifact, e.run): is_withdrawn for e, is_withdrawn in events}
        return {key for key, is_withdrawn in newest.items() if is_withdrawn}


def registrations(
    attestations: Attestations, evidence: Evidence, subject: str = ""
) -> Registrations:
    """Of all versions or of one, those whose signature holds."""
    filters = {"subject": subject} if subject else {}
    # First what was registered: a withdrawal is of one that is there.
    statements = _holding(attestations.find("registration", **filters), RegisteredVersion, evidence)
    withdrawn_digests = find_withdrawn(attestations.find("withdrawal", **filters), evidence.trusted)
    return Registrations(
        tuple(statement for statement in statements if statement.digest not in withdrawn_digests),
        tuple(statement for statement in statements if statement.digest in withdrawn_digests),
    )


def validations(
    attestations: Attestations, evidence: Evidence, artifact: Digest | None = None
) -> list[Validation]:
    """Of an agent, or of all, those whose signature holds, the oldest first."""
    filters = {"subject": artifact} if artifact else {}
    return _holding(attestations.find("validation", **filters), Validation, evidence)


def statement_problems(
    kind: type[SubjectDeclaration],
    attestations: Attestations,
    evidence: Evidence,
    at: datetime | None = None,
    subject: str = "",
) -> Iterator[str]:
    """What is wrong with those of a kind, each told by the version or the agent that it is of.

    Of all, or of one subject; or with those that were signed by a moment.
    """
    # The copies first: what is filed meanwhile is in the ledger before it has one.
    copies = copies_of(kind.folder_of(subject) if subject else kind.folder, evidence.mirror)
    rows = {
        attestation.name: attestation
        for attestation in attestations.find(kind.kind, **({"subject": subject} if subject else {}))
    }
    lost_names = lost_by_any(attestations, evidence.trusted)
    keys = _keys_of(kind, evidence)
    for row in (row for row in rows.values() if is_signed_as_of(row.envelope, at)):
        try:
            check_attested(row, kind, keys)
        except EvidenceError as error:
            description = _describe_content(row.envelope, kind, evidence) or _describe(
                row.subject, row.run
            )
            yield f"the {kind.kind} {row.name} of {description} does not verify: {error}"
    for name, copy in sorted(copies.items()):
        description = _describe_content(copy, kind, evidence)
        is_others = subject and name not in rows and description.partition(" ")[0] != subject
        if is_others or not is_signed_as_of(copy, at):
            continue
        if name not in rows and name not in lost_names:
            yield f"the {kind.kind} {name} of {description} is gone from the ledger; restore it"
        elif name in rows and rows[name].envelope != copy:
            yield f"the {kind.kind} {name} of {description} is another one in the evidence mirror"


def _holding(
    rows: Sequence[Attestation], kind: type[_Statement], evidence: Evidence
) -> list[_Statement]:
    statements = []
    for row in rows:
        try:
            statements.append(check_attested(row, kind, _keys_of(kind, evidence)))
        except EvidenceError:  # which `statement_problems` tells
            continue
    return sorted(statements, key=lambda statement: statement.columns.at)


def _describe_content(envelope: bytes, kind: type[SubjectDeclaration], evidence: Evidence) -> str:
    """What it was signed of; nothing where none of ours signed it."""
    try:
        row = verify_declared(envelope, kind, _keys_of(kind, evidence)).columns
    except EvidenceError:
        return ""
    return _describe(row.subject, row.run)


def _keys_of(kind: type[SubjectDeclaration], evidence: Evidence) -> TrustedKeys:
    """Of who declares, or of the steps."""
    return evidence.trusted if kind.kind in DECLARATIONS else evidence.step_keys or {}


def _describe(subject: str, run: str) -> str:
    return f"{subject} of run {run}" if run else subject
