"""Keeping what steps signed of their own work: with the ledger, and where nothing is changed."""

from contextlib import suppress
from typing import NamedTuple

from agentworld.errors import Conflict, EvidenceError, InputError
from agentworld.ledger.attestations import Attestations
from agentworld.records.attestation import Attestation
from agentworld.records.step_statement import STEP_STATEMENTS, SaidOnce, StepStatement
from agentworld.signing.declaration import check_attested, verify_declared, withdrawn
from agentworld.signing.keys import TrustedKeys
from agentworld.statements.genesis import check_own
from agentworld.storage.objects import WriteOnce


class Files(NamedTuple):
    """Of one ledger. Calls block; several may hand in the same, which is kept once."""

    kept: Attestations
    second_store: WriteOnce
    step_keys: TrustedKeys
    trusted: TrustedKeys
    """Of the service, or of who declares in its place."""

    def add(self, statement: StepStatement) -> str:
        """The name that it is kept under; raises InputError for what no step signed.

        Raises Conflict where the second store is of another ledger.
        """
        check_own(self.kept, self.second_store)
        envelope = statement.envelope.encode()
        try:
            told = verify_declared(envelope, STEP_STATEMENTS[statement.kind], self.step_keys)
        except EvidenceError as error:
            raise InputError(f"this {statement.kind} cannot be kept: {error}") from error
        known = self._known(told)
        if known is None:
            known = Attestation(told.name, told.kind, *told.filed, envelope)
            with suppress(Conflict):  # another replica was faster with the same
                self.kept.add(known)
        self.second_store.put(known.name, known.envelope)
        return known.name

    def _known(self, told: SaidOnce) -> Attestation | None:
        """The first that says the same and counts."""
        of = told.filed.subject
        kept = self.kept.find(told.kind, subject=of)  # first: a withdrawal is of one that is there
        gone = withdrawn(self.kept.find("withdrawal", subject=of), self.trusted)
        for each in kept:
            with suppress(EvidenceError):  # which the audit says
                known = check_attested(each, type(told), self.step_keys)
                if known.same == told.same and known.digest not in gone:
                    return each
        return None
