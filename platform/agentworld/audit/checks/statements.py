"""Signed statements about versions and agents: registrations, validations, withdrawals."""

from typing import NamedTuple

from agentworld.audit.checks.mirror import find_rows, verified_rows
from agentworld.audit.read.evidence import Evidence
from agentworld.ledger.attestations import Attestations
from agentworld.records.base import Digest
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.records.statements.validation import Validation
from agentworld.records.statements.withdrawal import Withdrawal
from agentworld.signing.envelope import find_withdrawn


class Registrations(NamedTuple):
    """The signed registrations of versions, the oldest first."""

    counted: tuple[RegisteredVersion, ...] = ()
    withdrawn: tuple[RegisteredVersion, ...] = ()
    """The withdrawn versions."""

    @property
    def newest(self) -> RegisteredVersion | None:
        """Null for a version without a signed registration."""
        return next(reversed(self.counted), None)

    @property
    def withdrawn_keys(self) -> set[tuple[str, Digest, str]]:
        """Name, artifact and run of withdrawn versions that were not registered again."""
        parts = ((self.counted, False), (self.withdrawn, True))
        events = [(statement, is_withdrawn) for part, is_withdrawn in parts for statement in part]
        events.sort(key=lambda event: event[0].at)
        newest = {(e.registered_as, e.artifact, e.run): is_withdrawn for e, is_withdrawn in events}
        return {key for key, is_withdrawn in newest.items() if is_withdrawn}


def registrations(
    attestations: Attestations, evidence: Evidence, subject: str = ""
) -> Registrations:
    """The verified registrations of all versions, or of one."""
    # Registrations are read first: a withdrawal names an existing one.
    rows = find_rows(RegisteredVersion, attestations, subject or None)
    statements = sorted(
        verified_rows(rows, RegisteredVersion, evidence), key=lambda statement: statement.at
    )
    withdrawals = find_rows(Withdrawal, attestations, subject or None)
    withdrawn_digests = find_withdrawn(withdrawals, evidence.trusted)
    return Registrations(
        tuple(statement for statement in statements if statement.digest not in withdrawn_digests),
        tuple(statement for statement in statements if statement.digest in withdrawn_digests),
    )


def validations(
    attestations: Attestations, evidence: Evidence, artifact: Digest | None = None
) -> list[Validation]:
    """The verified validations of an agent, or of all, the oldest first."""
    rows = find_rows(Validation, attestations, artifact)
    return sorted(verified_rows(rows, Validation, evidence), key=lambda statement: statement.at)
