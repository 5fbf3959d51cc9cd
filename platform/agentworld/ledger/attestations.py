"""Signed statements other than the logs of runs; append-only."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, insert, select

from agentworld.ledger.database import Database, bytes_of
from agentworld.ledger.rows import change_rows
from agentworld.ledger.tables import ATTESTATIONS
from agentworld.records.attestation import Attestation

_COLUMNS = [ATTESTATIONS.c[name] for name in Attestation._fields]


class Attestations:
    """Signed statements in the order in which they were added."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, *attestations: Attestation) -> None:
        """Adds statements, all or none; raises Conflict if a name is taken."""
        with self._database.transaction() as connection:
            keep(connection, *attestations)

    def find(self, kind: str, **columns: str) -> list[Attestation]:
        """The statements of a kind whose columns (`subject`, `simulator`, `run`) hold these
        values.
        """
        return self._read(ATTESTATIONS.c.kind == kind, **columns)

    def find_under(self, kind: str, prefix: str) -> list[Attestation]:
        """The statements of a kind whose names begin with `prefix`."""
        has_prefix = ATTESTATIONS.c.name.startswith(prefix, autoescape=True)
        candidates = self._read(ATTESTATIONS.c.kind == kind, has_prefix)
        return [row for row in candidates if row.name.startswith(prefix)]  # SQLite takes A for a

    def all(self) -> list[Attestation]:
        """The statements of every kind, also of unknown kinds."""
        return self._read()

    def _read(self, *conditions: ColumnElement[bool], **columns: str) -> list[Attestation]:
        equal = [ATTESTATIONS.c[name] == value for name, value in columns.items()]
        query = select(*_COLUMNS).where(*conditions, *equal).order_by(ATTESTATIONS.c.sequence)
        with self._database.transaction() as connection:
            rows = connection.execute(query).all()
        return [_attestation(row) for row in rows]

    def after(self, sequence: int) -> tuple[list[Attestation], int]:
        """The statements of all kinds after a position, and the position to continue from."""
        query = select(ATTESTATIONS.c.sequence, *_COLUMNS).where(ATTESTATIONS.c.sequence > sequence)
        with self._database.transaction() as connection:
            rows = connection.execute(query.order_by(ATTESTATIONS.c.sequence)).all()
        attestations = [_attestation(row[1:]) for row in rows]
        return attestations, rows[-1].sequence if rows else sequence

    def names(self) -> set[str]:
        """The names of all copies that the evidence mirror should have."""
        with self._database.transaction() as connection:
            return set(map(str, connection.scalars(select(ATTESTATIONS.c.name))))


def keep(connection: Connection, *attestations: Attestation) -> None:
    """Inserts rows in the caller's transaction."""
    for attestation in attestations:
        change_rows(connection, insert(ATTESTATIONS).values(attestation._asdict()))


def _attestation(row: Sequence[object]) -> Attestation:
    """Converts a value of a wrong type to text, or to no bytes, which never verify."""
    *texts, envelope = row
    return Attestation._make([*map(str, texts), bytes_of(envelope)])
