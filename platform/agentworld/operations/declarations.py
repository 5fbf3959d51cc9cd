"""Operations on a store's record that an operator declares: erasures, restores, withdrawals."""

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from pathlib import Path

from pydantic import ValidationError

from agentworld.audit.checks.losses import MissingRows, missing
from agentworld.audit.checks.withdrawals import MissingVersions, missing_versions
from agentworld.errors import InputError
from agentworld.operations.ledger import existing_ledger, open_evidence, open_sources
from agentworld.records.base import first_problem, now
from agentworld.records.statements.base import SignedRecord
from agentworld.serving.setup import statement_signer_of
from agentworld.storage.stores import Stores


def erase_episode(episode: str, store: Path, by: str) -> None:
    """Erases the texts of an episode, and keeps a signed statement of it.

    Raises NotFound, Conflict for an open episode, and StoreError. A repeated call completes an
    interrupted one.
    """
    with closing(existing_ledger(store)) as ledger:
        statement_signer = statement_signer_of(Stores.of(store), ledger)
        with statement_signer.declaring("erasure", episode) as declare:
            ledger.erase_texts(episode, by, declare)


def declare_restored(store: Path, reason: str, by: str) -> MissingRows:
    """Finds the rows that the evidence mirror has and the ledger lacks; with a reason, declares a
    restore. After the declaration, runs that lost entries cannot continue. Without a reason nothing
    is written. Raises InputError if the reason is too long, and Conflict if the evidence mirror
    belongs to another ledger.
    """
    with closing(existing_ledger(store)) as ledger:
        evidence = open_evidence(store, ledger)
        if not reason:
            return missing(ledger, evidence.mirror, evidence.trusted)
        statement_signer = statement_signer_of(Stores.of(store), ledger)
        statement_signer.ensure_genesis(restored=True)
        losses = missing(ledger, evidence.mirror, statement_signer.known_keys())
        for loss in _build_declarations(losses.declarations, reason, by):
            statement_signer.declare(loss)
        return losses


def declare_withdrawn(store: Path, refs: Collection[str], reason: str, by: str) -> MissingVersions:
    """Finds versions that were registered and are missing in the registry, all or these; with a
    reason, declares their withdrawal. After the declaration, the audit does not report them as
    missing. Without a reason nothing is written. Raises InputError if the reason is too long,
    NotFound if nothing was ever signed or one of `refs` is not missing, and EvidenceError if the
    signed records do not verify.
    """
    sources = open_sources(store)
    with closing(existing_ledger(store)) as ledger:
        evidence = open_evidence(store, ledger)
        report = missing_versions(sources._replace(ledger=ledger, evidence=evidence), refs)
        if reason:
            statement_signer = statement_signer_of(Stores.of(store), ledger)
            for declaration in _build_declarations(report.withdrawals, reason, by):
                statement_signer.declare(declaration)
        return report


def _build_declarations(
    declarations: Callable[[str, str, str], Sequence[SignedRecord]], reason: str, by: str
) -> Sequence[SignedRecord]:
    try:
        return declarations(reason, by, now())
    except ValidationError as error:
        raise InputError(f"this cannot be declared; correct {first_problem(error)}") from error
