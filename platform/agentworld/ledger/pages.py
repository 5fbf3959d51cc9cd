"""What a ledger holds, a page at a time: no more is read than is shown."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from sqlalchemy import Engine, Row, and_, func, select
from sqlalchemy.sql.elements import ColumnElement

from agentworld.errors import EvidenceError
from agentworld.ledger.database import translated
from agentworld.ledger.lost import IS_OPEN
from agentworld.ledger.reading import read_run
from agentworld.ledger.tables import EPISODES, RUNS, STEPS
from agentworld.ledger.texts import Texts
from agentworld.records.base import Digest
from agentworld.records.episode import EpisodeOpening
from agentworld.records.garbled import reading
from agentworld.records.run import RunOpening

GARBLED = "garbled"
"""What a list shows of a row that cannot be read; `audit verify` says why."""


class ListedRun(NamedTuple):
    """A run as its row tells it."""

    id: str
    simulator: Digest
    tenant: str
    opening: RunOpening | None
    """Null where the row cannot be read, which then tells nothing else."""
    log_length: int
    final_weights: Digest | None
    num_episodes: int
    num_steps: int

    @property
    def purpose(self) -> str:
        """What it was opened for."""
        return self.opening.purpose if self.opening else GARBLED

    @property
    def agent(self) -> str:
        """What whoever opened it called the agent that is to be made."""
        return self.opening.agent if self.opening else GARBLED


class ListedEpisode(NamedTuple):
    """An episode without its texts."""

    key: int
    """Grows in the order of opening."""
    id: str
    num_steps: int
    num_copied: int
    num_low: int
    """Steps whose observation the simulator was not sure of."""
    reward: float | None
    """Of its last step."""
    closed: str | None
    erased: bool


class ListedFork(NamedTuple):
    """An episode that starts from another one, or repeats it."""

    key: int
    """Grows in the order of opening."""
    id: str
    run: str
    tenant: str
    opening: EpisodeOpening | None
    """Null where it cannot be read."""
    closed: str | None


class ListedSimulator(NamedTuple):
    """A simulator that served runs."""

    simulator: Digest
    num_runs: int
    newest_run: str


class Pages:
    """Lists of the ledger; `tenant` null means all tenants."""

    def __init__(self, url: str, engine: Engine, texts: Texts) -> None:
        self._url = url
        self._engine = engine
        self._texts = texts

    def runs(
        self,
        limit: int,
        *,
        before: str = "",
        only_open: bool = False,
        simulators: Collection[Digest] | None = None,
        **columns: str | None,
    ) -> list[ListedRun]:
        """The newest runs whose columns hold these values, from below the name `before`.

        `simulators` are those that may have served them; null is all.
        """
        conditions = _equal(columns)
        conditions += [RUNS.c.id < before] if before else []
        conditions += [IS_OPEN] if only_open else []
        conditions += [] if simulators is None else [RUNS.c.simulator.in_(simulators)]
        query = select(RUNS).where(*conditions).order_by(RUNS.c.id.desc()).limit(limit)
        with translated(self._url), self._engine.begin() as connection:
            return [_run(row) for row in connection.execute(query)]

    def episodes(self, run: str, limit: int, after: int = 0) -> list[ListedEpisode]:
        """A run's episodes in the order of their opening, from behind the key `after`."""
        page = (
            select(EPISODES)
            .where(EPISODES.c.run == run, EPISODES.c.key > after)
            .order_by(EPISODES.c.key)
            .limit(limit)
            .subquery()
        )
        columns = page.c["key", "id", "copied", "closed", "erased"]
        counted = (
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
        is_last = and_(STEPS.c.episode == counted.c.key, STEPS.c.number == counted.c.last)
        query = select(counted, STEPS.c.reward).outerjoin(STEPS, is_last).order_by(counted.c.key)
        with translated(self._url), self._engine.begin() as connection:
            return [_episode(row) for row in connection.execute(query)]

    def forks(
        self,
        episode: str,
        limit: int,
        after: int = 0,
        *,
        tenant: str | None = None,
        run: str | None = None,
    ) -> list[ListedFork]:
        """The forks and the replays of an episode in the order of opening, from behind the key
        `after`; `run` null means those of all runs.

        Those that were erased are not told, nor an old one whose long opening no migration read.
        """
        conditions = [
            EPISODES.c.source == episode,
            EPISODES.c.key > after,
            *_equal({"tenant": tenant}),
        ]
        conditions += [EPISODES.c.run == run] if run else []
        query = (
            select(EPISODES, RUNS.c.tenant)
            .join(RUNS, RUNS.c.id == EPISODES.c.run)
            .where(*conditions)
            .order_by(EPISODES.c.key)
            .limit(limit)
        )
        with translated(self._url), self._engine.begin() as connection:
            rows = connection.execute(query).all()
        return [self._fork(row) for row in rows]

    def _fork(self, row: Row[Any]) -> ListedFork:
        opening = None
        with suppress(EvidenceError), reading(f"episode {row.id}"):  # as a verification says
            text = self._texts.read(row.opening, row.opening_digest)
            opening = EpisodeOpening.model_validate_json(text)
        return ListedFork(row.key, str(row.id), str(row.run), str(row.tenant), opening, row.closed)

    def num_episodes(self, run: str) -> int:
        """Of a run."""
        query = select(func.count()).select_from(EPISODES).where(EPISODES.c.run == run)
        with translated(self._url), self._engine.begin() as connection:
            return connection.scalar(query) or 0

    def simulators(
        self, limit: int, *, tenant: str | None = None, start: str = "", offset: int = 0
    ) -> list[ListedSimulator]:
        """Those whose digests start so, the one with the newest run first."""
        newest = func.max(RUNS.c.id)
        conditions = _equal({"tenant": tenant})
        conditions += [RUNS.c.simulator.startswith(start, autoescape=True)] if start else []
        query = (
            select(RUNS.c.simulator, func.count(), newest)
            .where(*conditions)
            .group_by(RUNS.c.simulator)
            .order_by(newest.desc())
            .limit(limit)
            .offset(offset)
        )
        with translated(self._url), self._engine.begin() as connection:
            return [
                ListedSimulator(str(simulator), num_runs, str(run))
                for simulator, num_runs, run in connection.execute(query)
            ]

    def tenants_of(self, runs: Iterable[str]) -> dict[str, str]:
        """Whose runs these are, as far as they are there."""
        query = select(RUNS.c.id, RUNS.c.tenant).where(RUNS.c.id.in_(list(runs)))
        with translated(self._url), self._engine.begin() as connection:
            return {row.id: row.tenant for row in connection.execute(query)}


def _equal(columns: dict[str, str | None]) -> list[ColumnElement[bool]]:
    return [RUNS.c[name] == value for name, value in columns.items() if value is not None]


def _run(row: Row[Any]) -> ListedRun:
    identity = str(row.id), str(row.simulator), str(row.tenant)
    try:
        run = read_run(row._mapping)
    except EvidenceError:  # as a verification says
        return ListedRun(*identity, None, 0, None, 0, 0)
    counts = run.num_episodes, run.num_steps
    return ListedRun(*identity, run.opening, run.log_length, run.final_weights, *counts)


def _episode(row: Row[Any]) -> ListedEpisode:
    return ListedEpisode(
        key=row.key,
        id=str(row.id),
        num_steps=row.num_steps,
        num_copied=row.copied,
        num_low=row.num_low,
        reward=row.reward,
        closed=row.closed,
        erased=row.erased,
    )
