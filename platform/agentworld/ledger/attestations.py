"""What the platform signed beside the logs of runs; nothing in it changes."""

from sqlalchemy import Engine, insert, select

from agentworld.ledger.database import translated
from agentworld.ledger.tables import ATTESTATIONS
from agentworld.records.attestation import Attestation, AttestationKind

_COLUMNS = [ATTESTATIONS.c[name] for name in Attestation._fields]


class Attestations:
    """Signed statements in the order in which they came."""

    def __init__(self, url: str, engine: Engine) -> None:
        self._url = url
        self._engine = engine

    def add(self, made: Attestation) -> None:
        """Keeps one more; raises Conflict for a name that is taken."""
        with translated(self._url), self._engine.begin() as connection:
            connection.execute(insert(ATTESTATIONS).values(made._asdict()))

    def find(self, kind: AttestationKind, **columns: str) -> list[Attestation]:
        """Those of a kind whose columns (`subject`, `simulator`, `run`) hold these values."""
        wanted = [ATTESTATIONS.c[name] == value for name, value in columns.items()]
        rows = select(*_COLUMNS).where(ATTESTATIONS.c.kind == kind, *wanted)
        with translated(self._url), self._engine.begin() as connection:
            found = connection.execute(rows.order_by(ATTESTATIONS.c.sequence)).all()
        return [Attestation(**row._mapping) for row in found]
