"""What an operator does to a store's record, and declares: erasures, and restores of a backup."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from agentworld.audit.missing import Missing, missing
from agentworld.errors import InputError
from agentworld.records.base import first_problem
from agentworld.records.declaration import Restore
from agentworld.simulate.setting_up import notary_of
from agentworld.simulate.stores import Stores
from agentworld.steps.ledger import existing_ledger, open_evidence


def erase_episode(episode: str, store: Path, by: str) -> None:
    """Takes away what was said in an episode, and keeps a signed statement of it.

    Raises NotFound, Conflict for an open episode, and StoreError. Once more ends what was
    interrupted.
    """
    with closing(existing_ledger(store)) as ledger:
        notary = notary_of(Stores.of(store), ledger)
        with notary.declaring("erasure", episode) as declare:
            ledger.erase_texts(episode, by, declare)


def restored(store: Path, reason: str, by: str) -> Missing:
    """What the second store holds and the ledger does not, any more; with a reason it is declared.

    Runs that lost entries cannot go on from then on. Without a reason nothing is written. Raises
    InputError for a reason that is too long, and Conflict where the second store is of another
    ledger, whose backup this one is not.
    """
    with closing(existing_ledger(store)) as ledger:
        evidence = open_evidence(store, ledger)
        if not reason:
            return missing(ledger, evidence.second_store, evidence.trusted)
        notary = notary_of(Stores.of(store), ledger)
        notary.adopt(restored=True)
        found = missing(ledger, evidence.second_store, notary.known_keys())
        for lost in _declarations(found, reason, by):
            notary.restored(lost)
        return found


def _declarations(found: Missing, reason: str, by: str) -> list[Restore]:
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    try:
        return found.declarations(reason, by, at)
    except ValidationError as error:
        raise InputError(f"this cannot be declared; correct {first_problem(error)}") from error
