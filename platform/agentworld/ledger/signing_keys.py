"""Which keys signed a ledger's runs, and when: for a service without a folder to tell it in.

Who may write here may add a key. An auditor who trusts nobody holds the public keys himself.
"""

from itertools import pairwise

from sqlalchemy import Connection, insert, select

from agentworld.ledger.database import Database
from agentworld.ledger.rows import change_rows
from agentworld.ledger.tables import SIGNING_KEYS
from agentworld.records.base import now
from agentworld.records.signing_key import SigningKey


class SigningKeys:
    """The history of the keys; nothing in it changes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def use(self, key: str, public: str) -> None:
        """From now on this key signs; the same again changes nothing."""
        with self._database.transaction() as connection:
            history = _history(connection)
            if not history or history[-1].key != key:
                row = {"key": key, "public": public, "since": now()}
                change_rows(connection, insert(SIGNING_KEYS).values(row))

    def all(self) -> list[SigningKey]:
        """Each time that a key signed, in order; the last one still does."""
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
