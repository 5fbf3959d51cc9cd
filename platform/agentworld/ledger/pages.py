"""What a ledger holds, a page at a time: no more is read than is shown."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import Engine, Row, and_, func, select
from sqlalchemy.sql.elements import ColumnElement

from agentworld.ledger.database import translated
from agentworld.ledger.tables import EPISODES, RUNS, STEPS
from agentworld.records.base import Digest
from agentworld.records.run import RunOpening


class ListedRun(NamedTuple):
    """A run without a count of what it holds."""

    id: str
    simulator: Digest
    tenant: str
    opening: RunOpening
    log_length: int
    final_weights: Digest | None


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


class ListedSimulator(NamedTuple):
    """A simulator that served runs."""

    simulator: Digest
    num_runs: int
    newest_run: str


class Pages:
    """Lists of the ledger; `tenant` null means all tenants."""

    def __init__(self, url: str, engine: Engine) -> None:
        self._url = url
        self._engine = engine

    def runs(
        self, limit: int, *, before: str = "", only_open: bool = False, **columns: str | None
    ) -> list[ListedRun]:
        """The newest runs whose columns hold these values, from below the name `before`."""
        wanted = _equal(columns)
        wanted += [RUNS.c.id < before] if before else []
        wanted += [RUNS.c.final_weights.is_(None)] if only_open else []
        query = select(RUNS).where(*wanted).order_by(RUNS.c.id.desc()).limit(limit)
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
        told = page.c["key", "id", "copied", "closed", "erased"]
        counted = (
            select(
                *told,
                func.count(STEPS.c.number).label("num_steps"),
                func.count().filter(STEPS.c.low_confidence).label("num_low"),
                func.max(STEPS.c.number).label("last"),
            )
            .outerjoin(STEPS, STEPS.c.episode == page.c.key)
            .group_by(*told)
            .subquery()
        )
        is_last = and_(STEPS.c.episode == counted.c.key, STEPS.c.number == counted.c.last)
        query = select(counted, STEPS.c.reward).outerjoin(STEPS, is_last).order_by(counted.c.key)
        with translated(self._url), self._engine.begin() as connection:
            return [_episode(row) for row in connection.execute(query)]

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
        wanted = _equal({"tenant": tenant})
        wanted += [RUNS.c.simulator.startswith(start, autoescape=True)] if start else []
        query = (
            select(RUNS.c.simulator, func.count(), newest)
            .where(*wanted)
            .group_by(RUNS.c.simulator)
            .order_by(newest.desc())
            .limit(limit)
            .offset(offset)
        )
        with translated(self._url), self._engine.begin() as connection:
            return [ListedSimulator(*row) for row in connection.execute(query)]

    def tenants_of(self, runs: Iterable[str]) -> dict[str, str]:
        """Whose runs these are, as far as they are there."""
        query = select(RUNS.c.id, RUNS.c.tenant).where(RUNS.c.id.in_(list(runs)))
        with translated(self._url), self._engine.begin() as connection:
            return {row.id: row.tenant for row in connection.execute(query)}


def _equal(columns: dict[str, str | None]) -> list[ColumnElement[bool]]:
    return [RUNS.c[name] == value for name, value in columns.items() if value is not None]


def _run(row: Row[Any]) -> ListedRun:
    return ListedRun(
        id=row.id,
        simulator=row.simulator,
        tenant=row.tenant,
        opening=RunOpening.model_validate_json(row.opening),
        log_length=row.length,
        final_weights=row.final_weights,
    )


def _episode(row: Row[Any]) -> ListedEpisode:
    return ListedEpisode(
        key=row.key,
        id=row.id,
        num_steps=row.num_steps,
        num_copied=row.copied,
        num_low=row.num_low,
        reward=row.reward,
        closed=row.closed,
        erased=row.erased,
    )
