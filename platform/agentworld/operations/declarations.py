"""What an operator does to a store's record, and declares: erasures, restores, withdrawals."""

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
    """Takes away what was said in an episode, and keeps a signed statement of it.

    Raises NotFound, Conflict for an open episode, and StoreError. Once more ends what was
    interrupted.
    """
    with closing(existing_ledger(store)) as ledger:
        statement_signer = statement_signer_of(Stores.of(store), ledger)
        with statement_signer.declaring("erasure", episode) as declare:
            ledger.erase_texts(episode, by, declare)


def declare_restored(store: Path, reason: str, by: str) -> MissingRows:
    """What the evidence mirror holds and the ledger lacks; with a reason it is declared.

    Runs that lost entries cannot go on from then on. Without a reason nothing is written. Raises
    InputError for a reason that is too long, and Conflict where the evidence mirror is of another
    ledger, whose backup this one is not.
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
    """What was registered and the registry has no more, all or these; declared with a reason.

    From then on nobody misses them. Without a reason nothing is written. Raises InputError for a
    reason that is too long, NotFound where nothing was ever signed or one of `refs` is not gone,
    and EvidenceError where what was signed does not verify.
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
