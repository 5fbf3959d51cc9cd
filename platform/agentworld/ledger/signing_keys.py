"""The history of the keys that signed a ledger's runs, for services without a folder of keys.

A writer of this table can add a key; an auditor with higher demands keeps the public keys
separately.
"""

from itertools import pairwise

from sqlalchemy import Connection, insert, select

from agentworld.ledger.database import Database
from agentworld.ledger.rows import change_rows
from agentworld.ledger.tables import SIGNING_KEYS
from agentworld.records.base import now
from agentworld.records.signing_key import SigningKey


class SigningKeys:
    """The append-only history of the keys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def use(self, key: str, public: str) -> None:
        """Makes this key the current signer; a repetition changes nothing."""
        with self._database.transaction() as connection:
            history = _history(connection)
            if not history or history[-1].key != key:
                row = {"key": key, "public": public, "since": now()}
                change_rows(connection, insert(SIGNING_KEYS).values(row))

    def all(self) -> list[SigningKey]:
        """The periods of all signers in order; the last one is current."""
        with self._database.transaction() as connection:
            history = _history(connection)
        past_keys = [
            key.model_copy(update={"until": after.since}) for key, after in pairwise(history)
        ]
        return [*past_keys, *history[-1:]]


def _history(connection: Connection) -> list[SigningKey]:
    table = SIGNING_KEYS.c
    rows = connection.execute(select(table.key, table.public, table.since).order_by(table.sequence))
    return [
        SigningKey(**{name: str(value) for name, value in row._mapping.items()}) for row in rows
    ]
