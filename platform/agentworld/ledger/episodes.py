"""Converts rows to episodes."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, select

from agentworld.errors import StoreError
from agentworld.ledger.lost import IS_OPEN
from agentworld.ledger.runs import is_of
from agentworld.ledger.tables import EPISODES, RUNS, STEPS
from agentworld.ledger.texts import Texts
from agentworld.ledger.writes import EpisodeClosed
from agentworld.records.base import Digest
from agentworld.records.episode import (
    CloseReason,
    Confidence,
    Episode,
    EpisodeOpening,
    EpisodeStep,
    first_head,
)
from agentworld.records.usage import Usage

_Row = Row[*tuple[Any, ...]]

_Reader = Callable[[bytes | None, Digest], str | None]
"""Reads the text of a row from its bytes and its digest; null if it was erased."""


def list_episodes(connection: Connection, names: Sequence[str], texts: Texts) -> dict[str, Episode]:
    """Existing episodes with their steps, by their names."""
    query = (
        select(EPISODES, RUNS.c.simulator)
        .join(RUNS, RUNS.c.id == EPISODES.c.run)
        .where(EPISODES.c.id.in_(names))
    )
    episode_rows = {row.key: row for row in connection.execute(query)}
    step_query = select(*_STEP).where(STEPS.c.episode.in_(episode_rows))
    rows = connection.execute(step_query.order_by(STEPS.c.episode, STEPS.c.number)).all()
    steps = {key: tuple(own) for key, own in groupby(rows, itemgetter(0))}
    return {row.id: _episode(row, steps.get(key, ()), texts) for key, row in episode_rows.items()}


def erased_episodes(connection: Connection) -> list[str]:
    """Episodes whose texts were erased."""
    erased = select(EPISODES.c.id).where(EPISODES.c.erased).order_by(EPISODES.c.key)
    return list(connection.scalars(erased))


def is_erased(connection: Connection, name: str) -> bool:
    """Whether retention erased an episode's texts."""
    return bool(connection.scalar(select(EPISODES.c.erased).where(EPISODES.c.id == name)))


def idle_episodes(
    connection: Connection, simulator: Digest | None, before: float
) -> list[EpisodeClosed]:
    """Closings of the open episodes of open runs that have no step since `before`."""
    idle = is_of(simulator) & IS_OPEN & (func.coalesce(STEPS.c.at, EPISODES.c.at) < before)
    return _ends(connection, idle, "expired")


def closings_of(connection: Connection, run: str) -> list[EpisodeClosed]:
    """Closings of a run's open episodes."""
    return _ends(connection, EPISODES.c.run == run, "closed")


def read_opening(row: _Row, texts: Texts) -> EpisodeOpening | None:
    """The opening of an episode; null if it was erased.

    Raises ValueError, and StoreError if the text is not canonical.
    """
    text = _reader(row, texts)(row.opening, row.opening_digest)
    if text is None:
        return None
    opening = EpisodeOpening.model_validate_json(text)
    if opening.text != text:
        raise StoreError("its opening was rewritten in another form", retryable=False)
    return opening


def _ends(
    connection: Connection, condition: ColumnElement[bool], reason: CloseReason
) -> list[EpisodeClosed]:
    steps = STEPS.alias()
    newest = select(func.max(steps.c.number)).where(steps.c.episode == EPISODES.c.key)
    is_last = (STEPS.c.episode == EPISODES.c.key) & (STEPS.c.number == newest.scalar_subquery())
    columns = EPISODES.c["id", "run", "num_copied", "opening_digest"]
    open_ = (
        select(*columns, RUNS.c.simulator, STEPS.c.number, STEPS.c.head)
        .join(RUNS, RUNS.c.id == EPISODES.c.run)
        .outerjoin(STEPS, is_last)
        .where(EPISODES.c.closed.is_(None), condition)
    )
    return [_end(row, reason) for row in connection.execute(open_)]


def _end(row: _Row, reason: CloseReason) -> EpisodeClosed:
    if row.number is not None:
        return EpisodeClosed(row.run, row.id, row.number, row.head, reason)
    head = first_head(row.id, row.simulator, row.run, row.num_copied, row.opening_digest)
    return EpisodeClosed(row.run, row.id, 0, head, reason)


def _reader(row: _Row, texts: Texts) -> _Reader:
    return _check_erased if row.erased else texts.read


def _check_erased(data: bytes | None, digest: Digest) -> None:
    """Raises StoreError if an erased text exists."""
    if data is not None:
        raise StoreError(f"the text {digest} was erased but exists; remove it", retryable=False)


def _episode(row: _Row, steps: Iterable[_Row], texts: Texts) -> Episode:
    read = _reader(row, texts)
    return Episode(
        id=row.id,
        simulator=row.simulator,
        run=row.run,
        opening=read_opening(row, texts),
        opening_digest=row.opening_digest,
        num_copied=row.num_copied,
        steps=tuple(_step(row.id, step, read) for step in steps),
        closed=row.closed,
    )


# In the order of EpisodeStep's fields: finding a column by its name takes as long as reading it.
_STEP = (
    *STEPS.c["episode", "number", "action", "observation", "action_digest", "observation_digest"],
    *STEPS.c["reward", "done", "truncated", "mean_logprob", "agreement", "low_confidence"],
    *STEPS.c["input_tokens", "cached_tokens", "output_tokens", "engine_seconds", "head"],
)


def _step(episode: str, row: _Row, read: _Reader) -> EpisodeStep:
    _, number, action, observation, action_digest, observation_digest, reward, done, truncated = (
        row[:9]
    )
    return EpisodeStep(
        episode,
        number,
        read(action, action_digest),
        read(observation, observation_digest),
        action_digest,
        observation_digest,
        reward,
        done,
        truncated,
        Confidence(*row[9:12]),
        Usage(*row[12:16]),
        row[16],
    )
