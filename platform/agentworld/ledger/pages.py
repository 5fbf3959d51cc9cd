"""Paginated lists; a page reads no more rows than it shows.

A page has at most `limit` rows and begins after `after`, the key of the previous page's last row. A
null `limit` or `tenant` means no restriction.
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from sqlalchemy import Row, and_, func, select

from agentworld.errors import EvidenceError
from agentworld.ledger.database import Database
from agentworld.ledger.episodes import read_opening
from agentworld.ledger.lost import IS_OPEN
from agentworld.ledger.runs import ListedRun, list_runs, where
from agentworld.ledger.tables import EPISODES, RUNS, STEPS
from agentworld.ledger.texts import Texts
from agentworld.records.base import Digest
from agentworld.records.episode import EpisodeOpening
from agentworld.records.garbled import reading


class ListedEpisode(NamedTuple):
    """An episode without its texts."""

    key: int
    """Grows in the order of opening."""
    id: str
    num_copied: int
    closed: str | None
    erased: bool
    num_steps: int
    num_low: int
    """Steps whose observation has low confidence."""
    reward: float | None
    """The reward of its last step."""
    task: str | None
    """The task's id; null without a task, and if the opening was erased, is unreadable or too long
    for its row.
    """


class ListedFork(NamedTuple):
    """An episode that forks or replays another one."""

    key: int
    """Grows in the order of opening."""
    id: str
    run: str
    tenant: str
    opening: EpisodeOpening | None
    """Null if it cannot be read."""
    closed: str | None


class ListedSimulator(NamedTuple):
    """A simulator that served runs."""

    simulator: Digest
    num_runs: int
    newest_run: str


class Pages:
    """Paginated lists of the ledger."""

    def __init__(self, database: Database, texts: Texts) -> None:
        self._database = database
        self._texts = texts

    def runs(
        self,
        limit: int | None = None,
        after: str = "",
        *,
        only_open: bool = False,
        simulators: Collection[Digest] | None = None,
        **columns: str | None,
    ) -> list[ListedRun]:
        """The runs whose columns hold these values, the newest first; `after` is a name.

        `simulators` restricts the runs to those simulators; null means all.
        """
        conditions = where(columns)
        conditions += [RUNS.c.id < after] if after else []
        conditions += [IS_OPEN] if only_open else []
        conditions += [] if simulators is None else [RUNS.c.simulator.in_(simulators)]
        with self._database.transaction() as connection:
            return list_runs(connection, *conditions, limit=limit)

    def episodes(self, run: str, limit: int, after: int = 0) -> list[ListedEpisode]:
        """A run's episodes in the order of their opening; `after` is a key."""
        page = (
            select(EPISODES)
            .where(EPISODES.c.run == run, EPISODES.c.key > after)
            .order_by(EPISODES.c.key)
            .limit(limit)
            .subquery()
        )
        columns = page.c["key", "id", "num_copied", "closed", "erased"]
        counts = (
            select(
                *columns,
                func.count(STEPS.c.number).label("num_steps"),
                func.count().filter(STEPS.c.low_confidence).label("num_low"),
                func.max(STEPS.c.number).label("last"),
            )
            .outerjoin(STEPS, STEPS.c.episode == page.c.key)
            .group_by(*columns)
            .subquery()
        )
        *page_columns, last = counts.c
        is_last = and_(STEPS.c.episode == counts.c.key, STEPS.c.number == last)
        query = (
            select(*page_columns, STEPS.c.reward, *EPISODES.c["opening", "opening_digest"])
            .select_from(counts.outerjoin(STEPS, is_last))
            .join(EPISODES, EPISODES.c.key == counts.c.key)
            .order_by(counts.c.key)
        )
        with self._database.transaction() as connection:
            rows = connection.execute(query).all()
        return [self._episode(row) for row in rows]

    def forks(
        self,
        episode: str,
        limit: int,
        after: int = 0,
        *,
        tenant: str | None = None,
        run: str | None = None,
    ) -> list[ListedFork]:
        """The forks and replays of an episode in the order of opening; `after` is a key.

        Leaves out erased ones, and old ones with a long opening that no migration read.
        """
        query = (
            select(EPISODES, RUNS.c.tenant)
            .join(RUNS, RUNS.c.id == EPISODES.c.run)
            .where(EPISODES.c.source == episode, EPISODES.c.key > after)
            .where(*where({"tenant": tenant, "id": run}))
            .order_by(EPISODES.c.key)
            .limit(limit)
        )
        with self._database.transaction() as connection:
            rows = connection.execute(query).all()
        return [self._fork(row) for row in rows]

    def _episode(self, row: Row[*tuple[Any, ...]]) -> ListedEpisode:
        # An opening in the object store is not fetched: a list would wait for each one.
        opening = self._opening(row) if row.opening is not None else None
        task = opening.task.id if opening and opening.task else None
        key, name, *values, _opening, _digest = row
        return ListedEpisode._make((key, str(name), *values, task))

    def _fork(self, row: Row[*tuple[Any, ...]]) -> ListedFork:
        opening = self._opening(row)
        return ListedFork(row.key, str(row.id), str(row.run), str(row.tenant), opening, row.closed)

    def _opening(self, row: Row[*tuple[Any, ...]]) -> EpisodeOpening | None:
        with suppress(EvidenceError), reading(f"episode {row.id}"):  # verification reports it
            return read_opening(row, self._texts)
        return None

    def simulators(
        self, limit: int, after: str = "", *, tenant: str | None = None, start: str = ""
    ) -> list[ListedSimulator]:
        """The simulators whose digests start with `start`, ordered by their newest run, which is
        `after`.
        """
        newest = func.max(RUNS.c.id)
        conditions = where({"tenant": tenant})
        conditions += [RUNS.c.simulator.startswith(start, autoescape=True)] if start else []
        query = (
            select(RUNS.c.simulator, func.count(), newest)
            .where(*conditions)
            .group_by(RUNS.c.simulator)
            .order_by(newest.desc())
            .limit(limit)
        )
        query = query.having(newest < after) if after else query
        with self._database.transaction() as connection:
            return [
                ListedSimulator(str(simulator), num_runs, str(run))
                for simulator, num_runs, run in connection.execute(query)
            ]

    def tenants_of(self, runs: Iterable[str]) -> dict[str, str]:
        """The tenants of existing runs."""
        query = select(RUNS.c.id, RUNS.c.tenant).where(RUNS.c.id.in_(list(runs)))
        with self._database.transaction() as connection:
            return {row.id: row.tenant for row in connection.execute(query)}
