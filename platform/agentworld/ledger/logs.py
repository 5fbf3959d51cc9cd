"""The logs of runs and their signed checkpoints."""

from sqlalchemy import func, select

from agentworld.errors import EvidenceError
from agentworld.ledger.database import Database, bytes_of
from agentworld.ledger.rows import insert_rows
from agentworld.ledger.runs import is_of
from agentworld.ledger.tables import CHECKPOINTS, EPISODES, LOG, RUNS, STEPS
from agentworld.records.base import Digest
from agentworld.records.garbled import reading
from agentworld.records.log import Fields, LogEntry

_MOST_ROWS = 10_000
"""Rows in one fetch: fetching them singly takes twice as long."""


class Logs:
    """Append-only entries and checkpoints."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def entries(self, run: str, after: int = 0) -> list[LogEntry]:
        """A run's log in its order, starting after sequence number `after`."""
        query = select(LOG).where(LOG.c.run == run, LOG.c.sequence > after)
        with self._database.transaction() as connection:
            rows = connection.execute(query.order_by(LOG.c.sequence))
            return [LogEntry(row.run, row.sequence, bytes_of(row.body)) for row in rows]

    def first_entry(self, run: str) -> Fields:
        """The run's opening; null if its log does not have it, which verification reports."""
        query = select(LOG.c.body).where(LOG.c.run == run, LOG.c.sequence == 1)
        with self._database.transaction() as connection:
            body = connection.scalar(query)
        return LogEntry(run, 1, bytes_of(body)).readable_fields

    def episode_names(self, run: str) -> list[str]:
        """A run's episodes in the order in which they were opened."""
        entries = self.entries(run)
        with reading(f"the log of run {run}"):
            opened = (entry.fields for entry in entries)
            return [
                str(fields["episode"]) for fields in opened if fields["kind"] == "episode-opened"
            ]

    def heads_by_entry(self, run: str) -> dict[int, list[Digest]]:
        """The heads of a run's steps, by the log entry that covers them, in the entry's order."""
        heads = (
            select(STEPS.c.entry, STEPS.c.place, STEPS.c.head)
            .join(EPISODES, EPISODES.c.key == STEPS.c.episode)
            .where(EPISODES.c.run == run)
            .order_by(STEPS.c.entry, STEPS.c.place)
        )
        by_entry: dict[int, list[Digest]] = {}
        with self._database.transaction() as connection:
            for rows in connection.execute(heads).partitions(_MOST_ROWS):
                for entry, place, head in rows:
                    entry_heads = by_entry.setdefault(entry if isinstance(entry, int) else 0, [])
                    # A step that is not in its place has no head that the entry names.
                    is_named = place == len(entry_heads) and isinstance(head, str)
                    entry_heads.append(head if is_named else "")
        return by_entry

    def lengths(self) -> dict[str, int]:
        """The length of each run's log; raises EvidenceError if it is not a number."""
        with self._database.transaction() as connection:
            rows = connection.execute(select(RUNS.c.id, RUNS.c.log_length))
            lengths = {row.id: row.log_length for row in rows}
        for run, length in lengths.items():
            if not isinstance(length, int):
                raise EvidenceError(
                    f"the ledger's record of run {run} is garbled: its length is {length!r:.80};"
                    " restore it"
                )
        return lengths

    def unsealed_runs(self, simulator: Digest | None = None) -> list[str]:
        """The runs of a simulator, or of all, whose logs are longer than their last checkpoint."""
        last = select(func.coalesce(func.max(CHECKPOINTS.c.length), 0)).where(
            CHECKPOINTS.c.run == RUNS.c.id
        )
        runs = select(RUNS.c.id).where(is_of(simulator), RUNS.c.log_length > last.scalar_subquery())
        with self._database.transaction() as connection:
            return list(connection.scalars(runs))

    def add_checkpoint(self, run: str, length: int, envelope: bytes) -> None:
        """Stores a signed checkpoint; raises Conflict if one of this length exists."""
        with self._database.transaction() as connection:
            insert_rows(connection, CHECKPOINTS, [(run, length, envelope)])

    def checkpoints(self, run: str) -> dict[int, bytes]:
        """A run's signed checkpoints by their lengths."""
        query = select(CHECKPOINTS.c.length, CHECKPOINTS.c.envelope).where(CHECKPOINTS.c.run == run)
        with self._database.transaction() as connection:
            return {row.length: bytes_of(row.envelope) for row in connection.execute(query)}
