"""What the platform signed beside the logs of runs; nothing in it changes."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, insert, select

from agentworld.ledger.database import Database, bytes_of
from agentworld.ledger.rows import change_rows
from agentworld.ledger.tables import ATTESTATIONS
from agentworld.records.attestation import Attestation

_COLUMNS = [ATTESTATIONS.c[name] for name in Attestation._fields]


class Attestations:
    """Signed statements in the order in which they came."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, *attestations: Attestation) -> None:
        """Keeps more, all of them or none; raises Conflict for a name that is taken."""
        with self._database.transaction() as connection:
            keep(connection, *attestations)

    def find(self, kind: str, **columns: str) -> list[Attestation]:
        """Those of a kind whose columns (`subject`, `simulator`, `run`) hold these values."""
        return self._read(ATTESTATIONS.c.kind == kind, **columns)

    def find_under(self, kind: str, prefix: str) -> list[Attestation]:
        """Those of a kind whose names begin so."""
        has_prefix = ATTESTATIONS.c.name.startswith(prefix, autoescape=True)
        candidates = self._read(ATTESTATIONS.c.kind == kind, has_prefix)
        return [row for row in candidates if row.name.startswith(prefix)]  # SQLite takes A for a

    def all(self) -> list[Attestation]:
        """Those of every kind, also of one that nobody knows."""
        return self._read()

    def _read(self, *conditions: ColumnElement[bool], **columns: str) -> list[Attestation]:
        equal = [ATTESTATIONS.c[name] == value for name, value in columns.items()]
        query = select(*_COLUMNS).where(*conditions, *equal).order_by(ATTESTATIONS.c.sequence)
        with self._database.transaction() as connection:
            rows = connection.execute(query).all()
        return [_attestation(row) for row in rows]

    def after(self, sequence: int) -> tuple[list[Attestation], int]:
        """Those of all kinds that came after a place, and the place to ask from next."""
        query = select(ATTESTATIONS.c.sequence, *_COLUMNS).where(ATTESTATIONS.c.sequence > sequence)
        with self._database.transaction() as connection:
            rows = connection.execute(query.order_by(ATTESTATIONS.c.sequence)).all()
        attestations = [_attestation(row[1:]) for row in rows]
        return attestations, rows[-1].sequence if rows else sequence

    def names(self) -> set[str]:
        """Of all copies that there should be."""
        with self._database.transaction() as connection:
            return set(map(str, connection.scalars(select(ATTESTATIONS.c.name))))


def keep(connection: Connection, *attestations: Attestation) -> None:
    """Adds rows to what else a transaction writes."""
    for attestation in attestations:
        change_rows(connection, insert(ATTESTATIONS).values(attestation._asdict()))


def _attestation(row: Sequence[object]) -> Attestation:
    """What is of another type becomes text, or no bytes, and verifies for nobody."""
    *texts, envelope = row
    return Attestation._make([*map(str, texts), bytes_of(envelope)])
