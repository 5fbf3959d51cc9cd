"""The ledger: the simulator service writes it, and auditors read it."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from operator import attrgetter

from sqlalchemy import select

from agentworld.errors import Conflict, NotFound
from agentworld.ledger import episodes, lost
from agentworld.ledger.adding import add, begin, close
from agentworld.ledger.aliases import Aliases
from agentworld.ledger.attestations import Attestations
from agentworld.ledger.counting import Counts
from agentworld.ledger.database import Database, migrate
from agentworld.ledger.erasing import (
    declare_erasure,
    erase_object,
    erase_rows,
    texts_outside_rows,
)
from agentworld.ledger.logs import Logs
from agentworld.ledger.orphans import orphan_rows
from agentworld.ledger.pages import Pages
from agentworld.ledger.runs import GarbledRun, Owner, count_run, find_owner, list_runs, where
from agentworld.ledger.signing_keys import SigningKeys
from agentworld.ledger.tables import EPISODES, RUNS
from agentworld.ledger.texts import Texts
from agentworld.ledger.writes import EpisodeClosed, Write, Writes
from agentworld.records.base import Digest
from agentworld.records.episode import Episode, new_name
from agentworld.records.garbled import ReadResult
from agentworld.records.run import LOCAL_TENANT, AgentRun, RunClosing, RunOpening
from agentworld.records.statements.base import Declare
from agentworld.storage.objects import ObjectStore


class Ledger:
    """Runs, their logs, episodes and steps. Each write is durable when the method returns.

    Calls block; several threads may share a ledger, and several ledgers a database. A writer locks
    the run's row until its transaction ends, so a run's log has one order.
    """

    def __init__(self, url: str, objects: ObjectStore | None = None) -> None:
        self._database = Database(url)
        self.objects = objects
        """The object store of long texts; null if every text is stored in its row."""
        self.aliases = Aliases(self._database)
        self.attestations = Attestations(self._database)
        migrate(self._database.engine)

    @cached_property
    def _texts(self) -> Texts:
        return Texts(self.objects)

    @cached_property
    def signing_keys(self) -> SigningKeys:
        """The public keys of this ledger's signers."""
        return SigningKeys(self._database)

    @cached_property
    def logs(self) -> Logs:
        """The logs of runs, and their checkpoints."""
        return Logs(self._database)

    @cached_property
    def counts(self) -> Counts:
        """Counts and usage of runs."""
        return Counts(self._database)

    @cached_property
    def pages(self) -> Pages:
        """Paginated lists."""
        return Pages(self._database, self._texts)

    def open_run(
        self,
        opening: RunOpening,
        simulator: Digest,
        name: str | None = None,
        tenant: str = LOCAL_TENANT,
    ) -> AgentRun:
        """Opens a run, once for each name; its simulator and tenant never change."""
        id_ = name or new_name()
        run = AgentRun(id=id_, opening=opening, simulator=simulator, tenant=tenant, log_length=1)
        try:
            with self._database.transaction() as connection:
                begin(connection, run)
        except Conflict:
            runs = self.readable_runs(id=id_).whole
            if [(run.opening, run.simulator, run.tenant) for run in runs] != [
                (opening, simulator, tenant)
            ]:
                raise
            run = runs[0]
        return run

    def close_run(self, run: str, closing: RunClosing) -> AgentRun:
        """Closes a run and its episodes, with its outcome; a repetition changes nothing."""
        record = self.run(run)
        if record.closing is None:
            record = self._get_closed(run, closing)
        if record.final_weights != closing.final_weights:
            raise Conflict(f"run {run} was closed with other weights, {record.final_weights}")
        if record.closing != closing:
            raise Conflict(f"run {run} was closed with another signature; the first one stays")
        return record

    def write(self, writes: Sequence[Write]) -> None:
        """Appends to several runs in one transaction.

        Raises NotFound for an unknown run, and Conflict for a closed run, for an episode that is
        closed, unknown or another run's, and for a step that exists.
        """
        # Every transaction locks runs in the same order, so two writers never deadlock.
        by_run = attrgetter("run")
        groups = groupby(sorted(writes, key=by_run), key=by_run)
        parts = [(run, Writes.of(own)) for run, own in groups]
        for _, part in parts:
            self._texts.keep(self._texts.long(part.texts))
        with self._database.transaction() as connection:
            for run, part in parts:
                add(connection, run, part, self._texts)

    def run(self, run: str) -> AgentRun:
        """A run with the number of its episodes and steps; raises NotFound."""
        runs = self.readable_runs(id=run).whole
        if not runs:
            raise lost.no_run(run)
        return runs[0]

    def counted_run(self, run: str) -> AgentRun:
        """Like `run`, with all numbers counted from the rows."""
        with self._database.transaction() as connection:
            record = count_run(connection, run)
        if record is None:
            raise lost.no_run(run)
        return record

    def owner(self, run: str) -> Owner:
        """The tenant and the simulator of a run; raises NotFound."""
        with self._database.transaction() as connection:
            owner = find_owner(connection, run)
        if owner is None:
            raise lost.no_run(run)
        return owner

    def has_run_of(self, simulator: Digest) -> bool:
        """Whether a run was opened with this simulator."""
        query = select(RUNS.c.id).where(RUNS.c.simulator == simulator).limit(1)
        with self._database.transaction() as connection:
            return connection.scalar(query) is not None

    def run_of(self, episode: str) -> str:
        """The run of an episode, also of an erased one; raises NotFound."""
        with self._database.transaction() as connection:
            run = connection.scalar(select(EPISODES.c.run).where(EPISODES.c.id == episode))
        if run is None:
            raise NotFound(
                f"there is no episode {episode}; reset to begin one, or see"
                " `agentworld episode list RUN`"
            )
        return str(run)

    def run_names(self) -> list[str]:
        """The names of all runs, also of unreadable ones."""
        with self._database.transaction() as connection:
            return list(map(str, connection.scalars(select(RUNS.c.id).order_by(RUNS.c.id.desc()))))

    def runs(self, **columns: str) -> list[AgentRun]:
        """All runs, or those of this `simulator` or with these `final_weights`, the newest first.

        Raises EvidenceError if a row is garbled.
        """
        return self.readable_runs(**columns).whole

    def readable_runs(self, **columns: str) -> ReadResult[AgentRun]:
        """Like `runs`, with GarbledRun for rows that cannot be read."""
        with self._database.transaction() as connection:
            runs = list_runs(connection, *where(columns))
        return ReadResult(
            [run for run in runs if isinstance(run, AgentRun)],
            [run.problem for run in runs if isinstance(run, GarbledRun)],
        )

    def episode(self, episode: str) -> Episode:
        """An episode with its steps; raises NotFound."""
        record = self.episodes_named([episode]).get(episode)
        if record is None:
            raise NotFound(
                f"there is no episode {episode}; reset to begin one, or see"
                " `agentworld episode list RUN`"
            )
        return record

    def episodes_named(self, names: Sequence[str]) -> dict[str, Episode]:
        """Existing episodes with their steps, by their names."""
        with self._database.transaction() as connection:
            return episodes.list_episodes(connection, names, self._texts)

    def episodes(self, run: str) -> Iterator[Episode]:
        """A run's episodes in the order in which they were opened, each read on demand."""
        return map(self.episode, self.logs.episode_names(run))

    def idle_episodes(self, simulator: Digest | None, before: float) -> list[EpisodeClosed]:
        """Closings of episodes that are idle since `before` (seconds since 1970), of one simulator
        or all.
        """
        with self._database.transaction() as connection:
            return episodes.idle_episodes(connection, simulator, before)

    def erased_episodes(self) -> list[str]:
        """Episodes whose texts retention erased."""
        with self._database.transaction() as connection:
            return episodes.erased_episodes(connection)

    def erase_texts(self, episode: str, by: str = "", declare: Declare | None = None) -> None:
        """Erases the texts of an episode's opening, actions and observations.

        `declare` signs a statement of it, and both are kept in one transaction. Digests, heads and
        the log stay. Raises NotFound, Conflict for an open episode, and StoreError if its long
        texts are not in this object store. A repetition completes an interrupted erasure.
        """
        with self._database.transaction() as connection:
            digests = texts_outside_rows(connection, episode)
            if not episodes.is_erased(connection, episode):
                self._texts.check_readable(digests)
        with self._database.transaction() as connection:
            erase_rows(connection, episode)
            if declare:
                declare_erasure(connection, episode, by, declare)
        for digest in digests:
            with self._database.transaction() as connection:
                erase_object(connection, digest, self._texts)

    def orphan_rows(self) -> Iterator[str]:
        """A sentence for each orphan row, which only another program can have written."""
        with self._database.transaction() as connection:
            problems = list(orphan_rows(connection))
        yield from problems

    def close(self) -> None:
        """Closes the database connections."""
        self._database.engine.dispose()

    def _get_closed(self, run: str, closing: RunClosing) -> AgentRun:
        try:
            with self._database.transaction() as connection:
                close(connection, run, closing, self._texts)
        except Conflict:  # another replica may close it first
            record = self.run(run)
            if record.closing is None:
                raise
            return record
        return self.run(run)
