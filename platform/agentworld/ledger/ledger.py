"""What the simulator service writes down, and what an auditor reads."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter

from sqlalchemy import Connection, select

from agentworld.errors import Conflict, NotFound
from agentworld.ledger import counting, lost, reading
from agentworld.ledger.adding import add, begin, close
from agentworld.ledger.aliases import Aliases
from agentworld.ledger.attestations import Attestations
from agentworld.ledger.counting import Used
from agentworld.ledger.database import connect, translated
from agentworld.ledger.erasing import declare_erasure, erase_object, erase_rows, texts_elsewhere
from agentworld.ledger.migrate import migrate
from agentworld.ledger.pages import Pages
from agentworld.ledger.reading import Owner
from agentworld.ledger.rows import insert_rows
from agentworld.ledger.signing_keys import SigningKeys
from agentworld.ledger.strays import strays
from agentworld.ledger.tables import CHECKPOINTS, EPISODES, RUNS
from agentworld.ledger.texts import Texts
from agentworld.ledger.writes import Closed, Write, Writes
from agentworld.records.base import Digest
from agentworld.records.declaration import Declare
from agentworld.records.episode import Episode, new_name
from agentworld.records.garbled import ReadEach
from agentworld.records.log import Fields, LogEntry
from agentworld.records.run import LOCAL_TENANT, AgentRun, RunClosing, RunOpening
from agentworld.storage.objects import ObjectStore


class Ledger:
    """Runs, their logs, episodes and steps. What a method has written survives a power cut.

    Calls block; one ledger serves several threads, and several ledgers one database. Who adds
    to a run holds its row until the transaction ends, so that a run's log has one order.
    """

    def __init__(self, url: str, objects: ObjectStore | None = None) -> None:
        self._url = url
        self._engine = connect(url)
        self.objects = objects
        """Where its long texts are; null where every text stays in its row."""
        self._texts = Texts(objects)
        self.aliases = Aliases(url, self._engine)
        self.attestations = Attestations(url, self._engine)
        self.signing_keys = SigningKeys(url, self._engine)
        self.pages = Pages(url, self._engine, self._texts)
        with translated(url):
            migrate(self._engine)

    def open_run(
        self,
        opening: RunOpening,
        simulator: Digest,
        name: str | None = None,
        tenant: str = LOCAL_TENANT,
    ) -> AgentRun:
        """Begins a run, once under a name; its simulator and its tenant never change."""
        id_ = name or new_name()
        run = AgentRun(id=id_, opening=opening, simulator=simulator, tenant=tenant, log_length=1)
        try:
            with self._transaction() as connection:
                begin(connection, run)
        except Conflict:
            runs = self.readable_runs(id=id_).whole
            if [(each.opening, each.simulator, each.tenant) for each in runs] != [
                (opening, simulator, tenant)
            ]:
                raise
            run = runs[0]
        return run

    def close_run(self, run: str, closing: RunClosing) -> AgentRun:
        """Ends a run with what it made, and its episodes; the same again changes nothing."""
        record = self.run(run)
        if record.closing is None:
            record = self._closed(run, closing)
        if record.final_weights != closing.final_weights:
            raise Conflict(f"run {run} was closed with other weights, {record.final_weights}")
        if record.closing != closing:
            raise Conflict(f"run {run} was closed with another signature; the first one stays")
        return record

    def write(self, writes: Sequence[Write]) -> None:
        """Adds to any runs in one transaction: all of it, or nothing.

        Raises NotFound for an unknown run, and Conflict for a closed run, for an episode that
        is closed, unknown or another run's, and for a step that is there already.
        """
        # The same order of runs everywhere, so that two writers never wait for each other.
        by_run = attrgetter("run")
        groups = groupby(sorted(writes, key=by_run), key=by_run)
        parts = [(run, Writes.of(own)) for run, own in groups]
        for _, part in parts:
            self._texts.keep(self._texts.long(part.texts))
        with self._transaction() as connection:
            for run, part in parts:
                add(connection, run, part, self._texts)

    def run(self, run: str) -> AgentRun:
        """A run with the number of its episodes and steps; raises NotFound."""
        runs = self.readable_runs(id=run).whole
        if not runs:
            raise lost.no_run(run)
        return runs[0]

    def counted_run(self, run: str) -> AgentRun:
        """The same for who relies on the numbers: all of it is counted anew."""
        with self._transaction() as connection:
            record = reading.counted_run(connection, run)
        if record is None:
            raise lost.no_run(run)
        return record

    def owner(self, run: str) -> Owner:
        """Whose a run is, and which simulator's; raises NotFound."""
        with self._transaction() as connection:
            owner = reading.owner(connection, run)
        if owner is None:
            raise lost.no_run(run)
        return owner

    def run_of(self, episode: str) -> str:
        """Which run an episode is of, whatever was erased of it; raises NotFound."""
        with self._transaction() as connection:
            run = connection.scalar(select(EPISODES.c.run).where(EPISODES.c.id == episode))
        if run is None:
            raise NotFound(f"there is no episode {episode}; reset to begin one")
        return str(run)

    def run_names(self) -> list[str]:
        """All runs by their names, also those that cannot be read."""
        with self._transaction() as connection:
            return list(map(str, connection.scalars(select(RUNS.c.id).order_by(RUNS.c.id.desc()))))

    def runs(self) -> list[AgentRun]:
        """All runs, the newest first; raises EvidenceError where one is garbled."""
        return self.readable_runs().whole

    def runs_for_agent_weights(self, weights: Digest) -> list[AgentRun]:
        """The same of the runs that made an agent."""
        return self.readable_runs(final_weights=weights).whole

    def readable_runs(self, **columns: str) -> ReadEach[AgentRun]:
        """Those that can be read of all, or with this `simulator` or these `final_weights`."""
        with self._transaction() as connection:
            return reading.runs(connection, columns)

    def episode(self, episode: str) -> Episode:
        """An episode with its steps; raises NotFound."""
        record = self.episodes_named([episode]).get(episode)
        if record is None:
            raise NotFound(f"there is no episode {episode}; reset to begin one")
        return record

    def episodes_named(self, names: Sequence[str]) -> dict[str, Episode]:
        """Several episodes with their steps, by their names; those that are there."""
        with self._transaction() as connection:
            return reading.episodes(connection, names, self._texts)

    def episodes(self, run: str) -> Iterator[Episode]:
        """A run's episodes in the order in which they were opened, each read when asked for."""
        with self._transaction() as connection:
            names = reading.episode_names(connection, run)
        return map(self.episode, names)

    def log(self, run: str, after: int = 0) -> list[LogEntry]:
        """A run's log in its order, from the entry that follows `after`."""
        with self._transaction() as connection:
            return reading.log(connection, run, after)

    def first_entry(self, run: str) -> Fields:
        """How a run was opened; nothing where its log does not tell it, as verification says."""
        with self._transaction() as connection:
            return reading.first_entry(connection, run)

    def heads_by_entry(self, run: str) -> dict[int, list[Digest]]:
        """The heads of a run's steps, by the log entry that covers them and in its order."""
        with self._transaction() as connection:
            return reading.heads_by_entry(connection, run)

    def unsealed(self, simulator: Digest | None = None) -> list[str]:
        """The runs of a simulator, or of all, whose logs are longer than their last checkpoint."""
        with self._transaction() as connection:
            return reading.unsealed(connection, simulator)

    def add_checkpoint(self, run: str, length: int, envelope: bytes) -> None:
        """Keeps a signed checkpoint; raises Conflict where one of this length is there."""
        with self._transaction() as connection:
            insert_rows(connection, CHECKPOINTS, [(run, length, envelope)])

    def checkpoints(self, run: str) -> dict[int, bytes]:
        """A run's signed checkpoints by their lengths."""
        with self._transaction() as connection:
            return reading.checkpoints(connection, run)

    def num_open_runs(self, tenant: str) -> int:
        """Of a tenant."""
        with self._transaction() as connection:
            return counting.open_runs(connection, "tenant", tenant)

    def num_open_runs_of(self, simulator: Digest) -> int:
        """Of a simulator."""
        with self._transaction() as connection:
            return counting.open_runs(connection, "simulator", simulator)

    def num_open_episodes(self, tenant: str) -> int:
        """Of a tenant's open runs."""
        with self._transaction() as connection:
            return counting.open_episodes(connection, "tenant", tenant)

    def open_episodes(self, simulator: Digest | None = None) -> dict[Digest, int]:
        """How many each simulator has that has any; or this one alone."""
        with self._transaction() as connection:
            return counting.open_episodes_by_simulator(connection, simulator)

    def num_open_episodes_in(self, run: str) -> int:
        """Of a run, where it is open."""
        with self._transaction() as connection:
            return counting.open_episodes(connection, "id", run)

    def used(self, *, by_episode: bool = False, **of: str) -> list[Used]:
        """What the runs, or the episodes, of a `tenant`, a `run` or one `episode` used.

        The newest run first; nothing where there is no such thing.
        """
        with self._transaction() as connection:
            return counting.used(connection, of, by_episode=by_episode)

    def idle_episodes(self, simulator: Digest | None, before: float) -> list[Closed]:
        """How to close what stood still since `before` (seconds since 1970), of one or of all."""
        with self._transaction() as connection:
            return reading.idle_episodes(connection, simulator, before)

    def log_lengths(self) -> dict[str, int]:
        """How long the log of each run is."""
        with self._transaction() as connection:
            return reading.log_lengths(connection)

    def erased_episodes(self) -> list[str]:
        """Those whose texts retention took away."""
        with self._transaction() as connection:
            return reading.erased_episodes(connection)

    def erase_texts(self, episode: str, by: str = "", declare: Declare | None = None) -> None:
        """Takes away what an episode was opened with, and what an agent and a world said in it.

        `declare` signs that it was, and that is kept together with it or not at all. Digests,
        heads and the log stay. Raises NotFound, Conflict for an open episode, and StoreError
        where its long texts are not in this object store. Once more changes nothing, and ends
        what was interrupted.
        """
        with self._transaction() as connection:
            elsewhere = texts_elsewhere(connection, episode)
            if not reading.is_erased(connection, episode):
                self._texts.check_there(elsewhere)
        with self._transaction() as connection:
            erase_rows(connection, episode)
            if declare:
                declare_erasure(connection, episode, by, declare)
        for digest in elsewhere:
            with self._transaction() as connection:
                erase_object(connection, digest, self._texts)

    def strays(self) -> list[str]:
        """A sentence for each row that belongs to nothing, which only somebody else writes."""
        with self._transaction() as connection:
            return list(strays(connection))

    def close(self) -> None:
        """Lets go of the database."""
        self._engine.dispose()

    def _closed(self, run: str, closing: RunClosing) -> AgentRun:
        try:
            with self._transaction() as connection:
                close(connection, run, closing, self._texts)
        except Conflict:  # another replica may close it first, asked for the same
            record = self.run(run)
            if record.closing is None:
                raise
            return record
        return self.run(run)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with translated(self._url), self._engine.begin() as connection:
            yield connection
