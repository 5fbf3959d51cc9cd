"""Writes runs of any size into ledgers in bulk; they verify like served ones.

An episode follows one of a few scripts, whose texts are hashed once. The heads, the log's entries,
its Merkle tree and its traffic are each run's own.
"""

import hashlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle, islice
from typing import NamedTuple, Protocol

import psycopg
import rfc8785
from sqlalchemy import Table, make_url

from agentworld.ledger import Ledger
from agentworld.ledger.tables import ATTESTATIONS, EPISODES, LOG, METADATA, RUNS, STEPS
from agentworld.ledger.writes import log_entries
from agentworld.records import log
from agentworld.records.base import Digest, digest_bytes
from agentworld.records.episode import Episode, EpisodeOpening, new_name, text_digest
from agentworld.records.log import Fields, LogEntry
from agentworld.records.run import AgentRun
from agentworld.signing.checkpoint import RunCheckpoint
from agentworld.signing.merkle import MerkleTree
from agentworld.signing.traffic import TrafficCount

NUM_STEPS = 20
"""Of every episode."""
_AT_ONCE = 32
"""Concurrent episodes of a run: so many steps are under one entry."""
_NUM_SCRIPTS = 50
_NUM_SEEDS = 64
"""The number of different starts of a run's episodes."""
_MOST_ROWS = 50_000

Row = tuple[object, ...]


class Sink(Protocol):
    """A ledger's database that accepts many rows at once."""

    def add(self, table: Table, rows: Sequence[Row]) -> None:
        """Adds rows with all columns except an automatic `sequence`."""
        ...

    def settle(self) -> None:
        """Commits, and updates the statistics that the database would update itself later."""
        ...


class SqliteSink:
    """A ledger in a file."""

    def __init__(self, url: str) -> None:
        Ledger(url).close()
        self._connection = sqlite3.connect(str(make_url(url).database))
        self._connection.execute("PRAGMA synchronous=OFF")

    def add(self, table: Table, rows: Sequence[Row]) -> None:
        values = ", ".join("?" * len(rows[0]))
        statement = f"INSERT INTO {table} ({_columns(table)}) VALUES ({values})"
        self._connection.executemany(statement, rows)
        self._connection.commit()  # a write-ahead log of all rows would be as large as the file

    def settle(self) -> None:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


class PostgresSink:
    """A ledger on a server; rows are copied without foreign key checks."""

    def __init__(self, url: str) -> None:
        Ledger(url).close()
        plain_url = make_url(url).set(drivername="postgresql")
        self._connection = psycopg.connect(plain_url.render_as_string(hide_password=False))
        self._connection.execute("SET session_replication_role = replica")

    def add(self, table: Table, rows: Sequence[Row]) -> None:
        statement = f"COPY {table} ({_columns(table)}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def settle(self) -> None:
        newest = "(SELECT coalesce(max(key), 1) FROM episodes)"
        sequence = "pg_get_serial_sequence('episodes', 'key')"
        self._connection.execute(f"SELECT setval({sequence}, {newest})")
        self._connection.commit()
        self._connection.autocommit = True
        self._connection.execute("VACUUM ANALYZE")
        self._connection.autocommit = False
        self._connection.execute("SET session_replication_role = replica")


class Book:
    """Writes the same runs into several ledgers."""

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks
        self._rows: dict[Table, list[Row]] = {table: [] for table in METADATA.tables.values()}
        self._key = 0
        self._scripts = [_script(number) for number in range(_NUM_SCRIPTS)]

    def write(self, run: AgentRun, num_episodes: int) -> RunCheckpoint:
        """Writes a run with its episodes, open if it has no closing; returns the data to sign."""
        run_log = _Told(run.id)
        self._tell(run_log, [log.run_opened(run)])
        openings = (EpisodeOpening(run=run.id, seed=seed) for seed in range(_NUM_SEEDS))
        starts = cycle([Episode.new("", run.simulator, opening) for opening in openings])
        texts = {
            item.opening_digest: item.opened_with.text.encode()
            for item in islice(starts, _NUM_SEEDS)
        }
        for first in range(0, num_episodes, _AT_ONCE):
            group = islice(starts, min(_AT_ONCE, num_episodes - first))
            self._serve([item._replace(id=new_name()) for item in group], texts, run_log)
        if run.closing:
            self._tell(run_log, [log.run_closed(run.closing)])
        counts = {"num_episodes": num_episodes, "num_steps": num_episodes * NUM_STEPS}
        row = {"id": run.id, "simulator": run.simulator, "tenant": run.tenant, **counts}
        row |= {"opening": run.opening.model_dump_json(), "log_length": run_log.length}
        row |= run.closing.model_dump() if run.closing else {}
        self.add(RUNS, *[tuple(row.get(column.name) for column in RUNS.columns)])
        return run_log.checkpoint(run)

    def add(self, table: Table, *rows: Row) -> None:
        """Adds rows of any table."""
        self._rows[table].extend(rows)
        if len(self._rows[table]) >= _MOST_ROWS:
            self._flush()

    def settle(self) -> None:
        """Flushes all rows."""
        self._flush()
        for sink in self._sinks:
            sink.settle()

    def _serve(self, episodes: list[Episode], texts: dict[Digest, bytes], run_log: "_Told") -> None:
        """Adds the rows of concurrent episodes, from their openings to their ends."""
        at = time.time()
        self._tell(run_log, [log.episode_opened(episode) for episode in episodes])
        first_key, entry = self._key + 1, run_log.length
        self._key += len(episodes)
        chains = []
        for index, episode in enumerate(episodes):
            key, digest = first_key + index, episode.opening_digest
            opening_columns = episode.id, episode.run, texts[digest], False, digest, 0
            self.add(EPISODES, (key, *opening_columns, at, "done", None))
            script = self._scripts[key % _NUM_SCRIPTS]
            chains.append([*_heads(episode.first_head, script)])
            self.add(
                STEPS,
                *(
                    (key, number, *turn.row, head, entry + number, index, at)
                    for number, (turn, head) in enumerate(zip(script, chains[-1], strict=True), 1)
                ),
            )
        self._tell(run_log, [_taken(heads) for heads in zip(*chains, strict=True)])
        ends = [
            (closing_episode.id, chain[-1])
            for closing_episode, chain in zip(episodes, chains, strict=True)
        ]
        self._tell(
            run_log, [log.episode_closed(name, NUM_STEPS, head, "done") for name, head in ends]
        )

    def _tell(self, run_log: "_Told", fields: Sequence[Fields]) -> None:
        self.add(LOG, *run_log.say(fields))

    def _flush(self) -> None:
        for table, rows in self._rows.items():
            for sink in self._sinks if rows else ():
                sink.add(table, rows)
            rows.clear()


class _Told:
    """A run's log, in the ledger's form and in that of its signer."""

    def __init__(self, run: str) -> None:
        self.length = 0
        self._run = run
        self._tree = MerkleTree()
        self._traffic = TrafficCount()

    def say(self, fields: Sequence[Fields]) -> list[LogEntry]:
        entries = log_entries(self._run, self.length + 1, fields)
        self.length += len(entries)
        for entry in entries:
            self._tree.append(entry.body)
            self._traffic.add(entry.readable_fields)
        return entries

    def checkpoint(self, run: AgentRun) -> RunCheckpoint:
        return RunCheckpoint(
            run=run.id,
            simulator=run.simulator,
            length=self.length,
            root=self._tree.root,
            traffic=self._traffic.total,
        )


class _Turn(NamedTuple):
    """A step of a script."""

    row: Row
    """Columns of STEPS from `action` to `engine_seconds`."""
    named: bytes
    """The input of its head except the previous head."""


def _script(seed: int) -> list[_Turn]:
    return [_turn(seed, number) for number in range(1, NUM_STEPS + 1)]


def _turn(seed: int, number: int) -> _Turn:
    texts = f"cat notes-{seed}-{number}.txt", f"line {number} of {seed}\n[0] ~/work"
    digests = [text_digest(text) for text in texts]
    is_done = number == NUM_STEPS
    outcome = (float(seed % 2) if is_done else None, is_done, False, None, None, False)
    usage = 400 + 20 * number, 300, 12, 0.25
    lines = str(number), *digests, rfc8785.dumps(list(outcome)).decode()
    data = [text.encode() for text in texts]
    return _Turn((*data, *digests, *outcome, *usage), "\n".join(("", *lines)).encode())


def _heads(first: Digest, script: list[_Turn]) -> Iterator[Digest]:
    head = first
    for turn in script:
        head = "sha256:" + hashlib.sha256(head.encode() + turn.named).hexdigest()
        yield head


def _taken(heads: Iterable[Digest]) -> Fields:
    digests = list(heads)
    return {
        "kind": "steps",
        "num_steps": len(digests),
        "heads": digest_bytes("\n".join(digests).encode()),
    }


def _columns(table: Table) -> str:
    automatic = ("sequence",) if table is ATTESTATIONS else ()
    return ", ".join(column.name for column in table.columns if column.name not in automatic)
