"""Counts of runs, episodes and rewards, and resource usage."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Row, func, null, select

from agentworld.ledger.database import Database
from agentworld.ledger.lost import IS_OPEN
from agentworld.ledger.runs import GARBLED
from agentworld.ledger.tables import EPISODES, RUNS, STEPS
from agentworld.records.base import Digest
from agentworld.records.run import RunOpening
from agentworld.records.usage import Usage


class RunUsage(NamedTuple):
    """The resource usage of a run, or of one of its episodes."""

    tenant: str
    simulator: Digest
    agent: str
    run: str
    episode: str | None
    """Null for the whole run, and for a run without episodes."""
    num_episodes: int
    num_steps: int
    """Without the steps that a fork copied: they belong to another episode."""
    usage: Usage


class Rewards(NamedTuple):
    """The rewards of a run's episodes that ended with a reward."""

    num_episodes: int
    num_successes: int
    """The number of episodes whose reward is 1."""
    mean: float | None
    """Null without rewards."""


class Counts:
    """Filters are a `tenant`, a `simulator`, a `run`, or several of them; without filters, all are
    counted.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def num_open_runs(self, **filters: str | None) -> int:
        """The number of open runs."""
        query = select(func.count()).select_from(RUNS).where(IS_OPEN, *_conditions_of(filters))
        with self._database.transaction() as connection:
            return connection.scalar(query) or 0

    def num_open_episodes(self, **filters: str | None) -> int:
        """The number of open episodes of open runs."""
        return sum(self.open_episodes(**filters).values())

    def open_episodes(self, **filters: str | None) -> dict[Digest, int]:
        """The number of open episodes of each simulator that has any."""
        query = (
            select(RUNS.c.simulator, func.count())
            .select_from(EPISODES.join(RUNS, RUNS.c.id == EPISODES.c.run))
            .where(EPISODES.c.closed.is_(None), IS_OPEN, *_conditions_of(filters))
            .group_by(RUNS.c.simulator)
        )
        with self._database.transaction() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def rewards(self, run: str) -> Rewards:
        """The final rewards of a run's episodes; reads the rewards of all its steps."""
        reward = STEPS.c.reward
        query = (
            select(func.count(reward), func.count().filter(reward >= 1), func.avg(reward))
            .select_from(STEPS.join(EPISODES, STEPS.c.episode == EPISODES.c.key))
            .where(EPISODES.c.run == run, STEPS.c.number > EPISODES.c.num_copied)
        )
        with self._database.transaction() as connection:
            return Rewards(*connection.execute(query).one())

    def run_usage(self, *, by_episode: bool = False, **filters: str | None) -> list[RunUsage]:
        """The usage of runs, or of each of their episodes; `filters` may also name an `episode`.

        The newest run comes first, its episodes in the order of their opening.
        """
        own = (STEPS.c.episode == EPISODES.c.key) & (STEPS.c.number > EPISODES.c.num_copied)
        owner_columns = [RUNS.c.tenant, RUNS.c.simulator, RUNS.c.opening, RUNS.c.id]
        owner_columns += [EPISODES.c.id] if by_episode else []
        episode = EPISODES.c.id if by_episode else null()
        sums = (func.coalesce(func.sum(STEPS.c[name]), 0).label(name) for name in Usage._fields)
        query = (
            select(
                *owner_columns[:3],
                RUNS.c.id.label("run"),
                episode.label("episode"),
                func.count(EPISODES.c.key.distinct()).label("num_episodes"),
                func.count(STEPS.c.number).label("num_steps"),
                *sums,
            )
            .select_from(
                RUNS.outerjoin(EPISODES, EPISODES.c.run == RUNS.c.id).outerjoin(STEPS, own)
            )
            .where(*_conditions_of(filters))
            .group_by(*owner_columns)
            .order_by(RUNS.c.id.desc(), func.min(EPISODES.c.key))  # names sort by time
        )
        with self._database.transaction() as connection:
            return [_run_usage(row) for row in connection.execute(query)]


_COLUMNS = {
    "tenant": RUNS.c.tenant,
    "simulator": RUNS.c.simulator,
    "run": RUNS.c.id,
    "episode": EPISODES.c.id,
}


def _conditions_of(filters: Mapping[str, str | None]) -> list[ColumnElement[bool]]:
    return [_COLUMNS[name] == value for name, value in filters.items() if value is not None]


def _run_usage(row: Row[*tuple[Any, ...]]) -> RunUsage:
    return RunUsage(
        tenant=row.tenant,
        simulator=row.simulator,
        agent=_agent(row.opening),
        run=row.run,
        episode=row.episode,
        num_episodes=row.num_episodes,
        num_steps=row.num_steps,
        # A database may return sums as its own numeric types.
        usage=Usage(
            int(row.input_tokens),
            int(row.cached_tokens),
            int(row.output_tokens),
            float(row.engine_seconds),
        ),
    )


def _agent(opening: str) -> str:
    """The agent's name from the run's opening; null if it is garbled, so its usage is still
    counted.
    """
    try:
        return RunOpening.model_validate_json(opening).agent
    except ValidationError:
        return GARBLED
