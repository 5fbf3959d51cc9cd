"""Stores the signed statements of steps: in the ledger, and in the evidence mirror."""

from contextlib import suppress
from typing import NamedTuple

from agentworld.errors import Conflict, EvidenceError, InputError
from agentworld.ledger.attestations import Attestations
from agentworld.records.attestation import Attestation
from agentworld.records.statements.base import StepRecord, statement_kinds
from agentworld.records.step_statement import StepStatement
from agentworld.signing.envelope import find_withdrawn, row_of, verify_envelope, verify_row
from agentworld.signing.keys import TrustedKeys
from agentworld.statements.genesis import check_own
from agentworld.storage.objects import WriteOnce


class Files(NamedTuple):
    """Statements of one ledger.

    Calls block; several callers may submit the same one, which is stored once.
    """

    attestations: Attestations
    mirror: WriteOnce
    step_keys: TrustedKeys
    trusted: TrustedKeys
    """The keys of the service, or of the command that declares in its place."""

    def add(self, statement: StepStatement) -> str:
        """The name under which it is stored; raises InputError if no step signed it.

        Raises Conflict if the evidence mirror belongs to another ledger.
        """
        check_own(self.attestations, self.mirror)
        envelope = statement.envelope.encode()
        kind = statement_kinds().get(statement.kind)
        if kind is None or not issubclass(kind, StepRecord):
            raise InputError(
                f"no step signs a {statement.kind!r}; submit a statement that a step signed"
            )
        try:
            record = verify_envelope(envelope, kind, self.step_keys)
        except EvidenceError as error:
            raise InputError(f"this {statement.kind} cannot be kept: {error}") from error
        attestation = self._find_same(record)
        if attestation is None:
            attestation = row_of(record, envelope)
            with suppress(Conflict):  # another replica was faster, with the same statement
                self.attestations.add(attestation)
        self.mirror.put(attestation.name, attestation.envelope)
        return attestation.name

    def _find_same(self, record: StepRecord) -> Attestation | None:
        """The first equal and valid one."""
        subject = record.columns.subject
        # read before the withdrawals, because a withdrawal is of an existing statement
        attestations = self.attestations.find(record.kind, subject=subject)
        withdrawals = find_withdrawn(
            self.attestations.find("withdrawal", subject=subject), self.trusted
        )
        for attestation in attestations:
            with suppress(EvidenceError):  # the audit reports it
                earlier = verify_row(attestation, type(record), self.step_keys)
                if earlier.same == record.same and earlier.digest not in withdrawals:
                    return attestation
        return None
