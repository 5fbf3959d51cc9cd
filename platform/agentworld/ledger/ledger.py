"""What the simulator service writes down, and what an auditor reads."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, RowMapping, Select, func, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from agentworld.errors import Conflict, NotFound
from agentworld.ledger.database import connect, translated
from agentworld.ledger.tables import EPISODES, METADATA, RUNS, STEPS
from agentworld.records.base import Digest
from agentworld.records.run import (
    AgentRun,
    Episode,
    EpisodeOpening,
    EpisodeStep,
    RunOpening,
)


class Ledger:
    """Runs, episodes and steps. What a method has returned from writing survives a power cut.

    Calls block; one ledger serves several threads.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._engine = connect(url)
        with translated(url):
            METADATA.create_all(self._engine)

    def open_run(self, opening: RunOpening, simulator: Digest) -> AgentRun:
        """Begins a run; its simulator never changes."""
        run = AgentRun(id=uuid.uuid4().hex, opening=opening, simulator=simulator)
        with self._transaction() as connection:
            row = {"id": run.id, "simulator": simulator, **opening.model_dump()}
            connection.execute(insert(RUNS).values(row))
        return run

    def close_run(self, run: str, final_weights: Digest) -> AgentRun:
        """Ends a run with the weights it made; the same weights again change nothing."""
        with self._transaction() as connection:
            connection.execute(
                update(RUNS)
                .where(RUNS.c.id == run, RUNS.c.final_weights.is_(None))
                .values(final_weights=final_weights)
            )
        closed = self.run(run)
        if closed.final_weights != final_weights:
            raise Conflict(f"run {run} was closed with other weights, {closed.final_weights}")
        return closed

    def run(self, run: str) -> AgentRun:
        """A run with the number of its episodes and steps; raises NotFound."""
        found = self._runs(RUNS.c.id == run)
        if not found:
            raise NotFound(f"there is no run {run}; open one first")
        return found[0]

    def runs_for_agent_weights(self, weights: Digest) -> list[AgentRun]:
        """The runs that made an agent."""
        return self._runs(RUNS.c.final_weights == weights)

    def runs_of_simulator(self, simulator: Digest) -> list[AgentRun]:
        """The runs that a simulator served."""
        return self._runs(RUNS.c.simulator == simulator)

    def open_episode(self, opening: EpisodeOpening, simulator: Digest) -> Episode:
        """Begins an episode of an open run with this simulator; raises NotFound or Conflict."""
        episode = Episode(id=uuid.uuid4().hex, simulator=simulator, opening=opening)
        row = {"id": episode.id, "run": opening.run, "opening": opening.model_dump(mode="json")}
        with self._transaction() as connection:
            served = connection.execute(_simulator_of(opening.run)).scalars().first()
            if served is None:
                raise NotFound(f"there is no run {opening.run}; open one first")
            if served != simulator:
                raise Conflict(f"run {opening.run} is served by {served} and by no other simulator")
            connection.execute(insert(EPISODES).values(row))
            _check_open(connection, {episode.id})
        return episode

    def append_steps(self, steps: Sequence[EpisodeStep]) -> None:
        """Adds steps of any episodes in one transaction: all of them, or none.

        Raises Conflict where one is there already or belongs to a closed run.
        """
        with self._transaction() as connection:
            connection.execute(insert(STEPS), [step.model_dump() for step in steps])
            _check_open(connection, {step.episode for step in steps})

    def episode(self, episode: str) -> Episode:
        """An episode with its steps; raises NotFound."""
        steps = select(STEPS).where(STEPS.c.episode == episode).order_by(STEPS.c.number)
        with self._transaction() as connection:
            opened = connection.execute(_opened(episode)).mappings().first()
            rows = connection.execute(steps).mappings().all()
        if opened is None:
            raise NotFound(f"there is no episode {episode}; reset to begin one")
        return Episode.model_validate({**opened, "steps": [dict(row) for row in rows]})

    def close(self) -> None:
        """Lets go of the database."""
        self._engine.dispose()

    def _runs(self, condition: ColumnElement[bool]) -> list[AgentRun]:
        with self._transaction() as connection:
            return [_run(row) for row in connection.execute(_counted_runs(condition)).mappings()]

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with translated(self._url), self._engine.begin() as connection:
            yield connection


def _run(row: RowMapping) -> AgentRun:
    opening = {name: row[name] for name in RunOpening.model_fields}
    rest = {name: row[name] for name in AgentRun.model_fields if name != "opening"}
    return AgentRun.model_validate({"opening": opening, **rest})


def _counted_runs(condition: ColumnElement[bool]) -> Select[*tuple[object, ...]]:
    return (
        select(
            RUNS,
            func.count(EPISODES.c.id.distinct()).label("num_episodes"),
            func.count(STEPS.c.number).label("num_steps"),
        )
        .outerjoin(EPISODES, EPISODES.c.run == RUNS.c.id)
        .outerjoin(STEPS, STEPS.c.episode == EPISODES.c.id)
        .where(condition)
        .group_by(RUNS.c.id)
        .order_by(RUNS.c.id)
    )


def _simulator_of(run: str) -> Select[str]:
    return select(RUNS.c.simulator).where(RUNS.c.id == run)


def _opened(episode: str) -> Select[*tuple[object, ...]]:
    return (
        select(EPISODES.c.id, EPISODES.c.opening, RUNS.c.simulator)
        .join(RUNS, RUNS.c.id == EPISODES.c.run)
        .where(EPISODES.c.id == episode)
    )


def _check_open(connection: Connection, episodes: set[str]) -> None:
    """Comes after an insert, whose lock keeps everybody else from closing the run meanwhile."""
    closed = (
        select(RUNS.c.id)
        .join(EPISODES, EPISODES.c.run == RUNS.c.id)
        .where(EPISODES.c.id.in_(episodes), RUNS.c.final_weights.is_not(None))
    )
    run = connection.execute(closed).scalars().first()
    if run is not None:
        raise Conflict(f"run {run} is closed; open another one")
