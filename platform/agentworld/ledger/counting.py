"""How many there are, and what they used."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError
from sqlalchemy import Connection, Row, func, null, select

from agentworld.ledger.lost import IS_OPEN
from agentworld.ledger.tables import EPISODES, RUNS, STEPS
from agentworld.records.base import Digest
from agentworld.records.run import RunOpening
from agentworld.records.usage import Usage


class Used(NamedTuple):
    """What a run, or one of its episodes, used."""

    tenant: str
    simulator: Digest
    agent: str
    run: str
    episode: str | None
    """Null for the whole run, and for a run that has none."""
    num_episodes: int
    num_steps: int
    """Without those that came with a fork: another episode took them."""
    usage: Usage


def open_runs(connection: Connection, column: str, value: str) -> int:
    """Whose column holds this value."""
    open_ = (RUNS.c[column] == value) & IS_OPEN
    return connection.scalar(select(func.count()).select_from(RUNS).where(open_)) or 0


def open_episodes(connection: Connection, column: str, value: str) -> int:
    """Of open runs whose column holds this value."""
    open_ = EPISODES.c.closed.is_(None) & IS_OPEN
    joined = EPISODES.join(RUNS, RUNS.c.id == EPISODES.c.run)
    query = select(func.count()).select_from(joined).where(open_, RUNS.c[column] == value)
    return connection.scalar(query) or 0


def open_episodes_by_simulator(
    connection: Connection, simulator: Digest | None
) -> dict[Digest, int]:
    """Of open runs; of one simulator alone where it is named."""
    query = (
        select(RUNS.c.simulator, func.count())
        .select_from(EPISODES.join(RUNS, RUNS.c.id == EPISODES.c.run))
        .where(EPISODES.c.closed.is_(None), IS_OPEN)
        .group_by(RUNS.c.simulator)
    )
    if simulator is not None:
        query = query.where(RUNS.c.simulator == simulator)
    return {row[0]: row[1] for row in connection.execute(query)}


def used(connection: Connection, of: Mapping[str, str], *, by_episode: bool) -> list[Used]:
    """The newest run first, its episodes in the order of their opening.

    `of` names a tenant, a run, an episode, several of them, or nothing for all.
    """
    columns = {"tenant": RUNS.c.tenant, "run": RUNS.c.id, "episode": EPISODES.c.id}
    own = (STEPS.c.episode == EPISODES.c.key) & (STEPS.c.number > EPISODES.c.copied)
    whose = [RUNS.c.tenant, RUNS.c.simulator, RUNS.c.opening, RUNS.c.id]
    whose += [EPISODES.c.id] if by_episode else []
    episode = EPISODES.c.id if by_episode else null()
    sums = (func.coalesce(func.sum(STEPS.c[name]), 0).label(name) for name in Usage._fields)
    query = (
        select(
            *whose[:3],
            RUNS.c.id.label("run"),
            episode.label("episode"),
            func.count(EPISODES.c.key.distinct()).label("num_episodes"),
            func.count(STEPS.c.number).label("num_steps"),
            *sums,
        )
        .select_from(RUNS.outerjoin(EPISODES, EPISODES.c.run == RUNS.c.id).outerjoin(STEPS, own))
        .where(*(columns[name] == value for name, value in of.items()))
        .group_by(*whose)
        .order_by(RUNS.c.id.desc(), func.min(EPISODES.c.key))  # names sort by time
    )
    return [_used(row) for row in connection.execute(query)]


def _used(row: Row[*tuple[Any, ...]]) -> Used:
    return Used(
        tenant=row.tenant,
        simulator=row.simulator,
        agent=_agent(row.opening),
        run=row.run,
        episode=row.episode,
        num_episodes=row.num_episodes,
        num_steps=row.num_steps,
        # Sums of a database may be of its own kinds of number.
        usage=Usage(
            int(row.input_tokens),
            int(row.cached_tokens),
            int(row.output_tokens),
            float(row.engine_seconds),
        ),
    )


def _agent(opening: str) -> str:
    """What whoever opened a run called its agent; a garbled opening hides no cost."""
    try:
        return RunOpening.model_validate_json(opening).agent
    except ValidationError:
        return "garbled"
