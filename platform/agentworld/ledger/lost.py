"""Runs that lost entries in a declared restore of the ledger: they accept no more entries."""

from sqlalchemy import Connection, select

from agentworld.errors import NotFound
from agentworld.ledger.tables import ATTESTATIONS, RUNS

IS_OPEN = RUNS.c.final_weights.is_(None) & ~(
    select(ATTESTATIONS.c.run)
    .where(ATTESTATIONS.c.run == RUNS.c.id, ATTESTATIONS.c.kind == "restore")
    .correlate(RUNS)
    .exists()
)
"""A condition for rows of open runs."""


def is_lost(connection: Connection, run: str) -> bool:
    """Whether a run lost entries or is missing."""
    query = select(ATTESTATIONS.c.sequence).where(
        ATTESTATIONS.c.run == run, ATTESTATIONS.c.kind == "restore"
    )
    return connection.scalar(query.limit(1)) is not None


def no_run(run: str) -> NotFound:
    """The error for an unknown or deleted run."""
    return NotFound(
        f"there is no run {run} in the ledger; name one that `agentworld run list` prints, or"
        " restore the ledger if it had this run"
    )
