"""From rows to records."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, RowMapping, func, select, true
from sqlalchemy.sql.elements import ColumnElement

from agentworld.errors import EvidenceError, StoreError
from agentworld.ledger.lost import IS_OPEN
from agentworld.ledger.tables import CHECKPOINTS, EPISODES, LOG, RUNS, STEPS
from agentworld.ledger.texts import Texts, bytes_of
from agentworld.ledger.writes import Closed
from agentworld.records.base import Digest
from agentworld.records.episode import (
    CloseReason,
    Confidence,
    Episode,
    EpisodeOpening,
    EpisodeStep,
    first_head,
)
from agentworld.records.garbled import ReadEach, read_each, reading
from agentworld.records.log import Fields, LogEntry
from agentworld.records.run import AgentRun, RunClosing, RunOpening
from agentworld.records.usage import Usage

Reader = Callable[[bytes | None, Digest], str | None]
"""The text of a row's bytes and its digest; null where it was erased."""

_MOST_ROWS = 10_000
"""That are fetched at once: one by one they take twice as long."""


class Owner(NamedTuple):
    """Whose a run is, and which simulator's: neither ever changes."""

    tenant: str
    simulator: Digest


def runs(connection: Connection, columns: Mapping[str, str]) -> ReadEach[AgentRun]:
    """Runs whose columns hold these values, the newest first."""
    conditions = [RUNS.c[name] == value for name, value in columns.items()]
    rows = select(RUNS).where(*conditions).order_by(RUNS.c.id.desc())  # names sort by time
    return read_each(connection.execute(rows).mappings(), read_run)


def read_run(row: RowMapping) -> AgentRun:
    """Raises EvidenceError where the row is none that a run ever had."""
    with reading(f"the ledger's record of run {row['id']}"):
        weights, signature = row["final_weights"], row["signature"]
        closing = None
        if weights is not None or signature is not None:
            closing = RunClosing(final_weights=weights, signature=signature)
        return AgentRun(
            id=row["id"],
            opening=RunOpening.model_validate_json(row["opening"]),
            simulator=row["simulator"],
            tenant=row["tenant"],
            closing=closing,
            num_episodes=row["num_episodes"],
            num_steps=row["num_steps"],
            log_length=row["length"],
        )


def counted_run(connection: Connection, run: str) -> AgentRun | None:
    """A run whose episodes and answered steps are counted anew, in one look at all of it."""
    episodes_ = select(func.count()).where(EPISODES.c.run == RUNS.c.id)
    steps = (
        select(func.count())
        .select_from(STEPS.join(EPISODES, EPISODES.c.key == STEPS.c.episode))
        .where(EPISODES.c.run == RUNS.c.id, STEPS.c.number > EPISODES.c.copied)
    )
    counted = (episodes_.scalar_subquery(), steps.scalar_subquery())
    row = connection.execute(select(RUNS, *counted).where(RUNS.c.id == run)).first()
    if row is None:
        return None
    *_, num_episodes, num_steps = row
    record = read_run(row._mapping)
    return record.model_copy(update={"num_episodes": num_episodes, "num_steps": num_steps})


def episodes(connection: Connection, names: Sequence[str], texts: Texts) -> dict[str, Episode]:
    """Episodes with their steps, by their names; those that are there."""
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


def log_lengths(connection: Connection) -> dict[str, int]:
    """How long the log of each run is; raises EvidenceError where that is no number."""
    lengths = {row.id: row.length for row in connection.execute(select(RUNS.c.id, RUNS.c.length))}
    for run, length in lengths.items():
        if not isinstance(length, int):
            raise EvidenceError(
                f"the ledger's record of run {run} is garbled: its length is {length!r:.80};"
                " restore it"
            )
    return lengths


def erased_episodes(connection: Connection) -> list[str]:
    """Those whose texts were taken away."""
    erased = select(EPISODES.c.id).where(EPISODES.c.erased).order_by(EPISODES.c.key)
    return list(connection.scalars(erased))


def is_erased(connection: Connection, name: str) -> bool:
    """Whether retention took an episode's texts away."""
    return bool(connection.scalar(select(EPISODES.c.erased).where(EPISODES.c.id == name)))


def episode_names(connection: Connection, run: str) -> list[str]:
    """A run's episodes as the log tells their order."""
    with reading(f"the log of run {run}"):
        opened = (entry.fields for entry in log(connection, run))
        return [str(fields["episode"]) for fields in opened if fields["kind"] == "episode-opened"]


def log(connection: Connection, run: str, after: int = 0) -> list[LogEntry]:
    """A run's log in its order."""
    query = select(LOG).where(LOG.c.run == run, LOG.c.sequence > after)
    rows = connection.execute(query.order_by(LOG.c.sequence))
    return [LogEntry(row.run, row.sequence, bytes_of(row.body)) for row in rows]


def first_entry(connection: Connection, run: str) -> Fields:
    """What the first entry of a run's log tells; nothing where that is gone or garbled."""
    body = connection.scalar(select(LOG.c.body).where(LOG.c.run == run, LOG.c.sequence == 1))
    return LogEntry(run, 1, bytes_of(body)).readable_fields


def heads_by_entry(connection: Connection, run: str) -> dict[int, list[Digest]]:
    """The heads of a run's steps, by the log entry that covers them and in its order."""
    heads = (
        select(STEPS.c.entry, STEPS.c.place, STEPS.c.head)
        .join(EPISODES, EPISODES.c.key == STEPS.c.episode)
        .where(EPISODES.c.run == run)
        .order_by(STEPS.c.entry, STEPS.c.place)
    )
    by_entry: dict[int, list[Digest]] = {}
    for rows in connection.execute(heads).partitions(_MOST_ROWS):
        for entry, place, head in rows:
            there = by_entry.setdefault(entry if isinstance(entry, int) else 0, [])
            # The head of a step that is not in its place is none that the entry names.
            there.append(head if place == len(there) and isinstance(head, str) else "")
    return by_entry


def owner(connection: Connection, run: str) -> Owner | None:
    """Whose a run is; nothing else of it is read."""
    rows = connection.execute(select(RUNS.c.tenant, RUNS.c.simulator).where(RUNS.c.id == run))
    row = rows.first()
    return None if row is None else Owner(row.tenant, row.simulator)


def unsealed(connection: Connection, simulator: Digest | None) -> list[str]:
    """Runs whose logs are longer than their last checkpoint."""
    last = select(func.coalesce(func.max(CHECKPOINTS.c.length), 0)).where(
        CHECKPOINTS.c.run == RUNS.c.id
    )
    grown = select(RUNS.c.id).where(_is_of(simulator), RUNS.c.length > last.scalar_subquery())
    return list(connection.scalars(grown))


def checkpoints(connection: Connection, run: str) -> dict[int, bytes]:
    """Signed checkpoints by their lengths."""
    rows = connection.execute(
        select(CHECKPOINTS.c.length, CHECKPOINTS.c.envelope).where(CHECKPOINTS.c.run == run)
    )
    return {row.length: bytes_of(row.envelope) for row in rows}


def idle_episodes(connection: Connection, simulator: Digest | None, before: float) -> list[Closed]:
    """Open episodes of open runs without a step since `before`, as they are to be closed."""
    idle = _is_of(simulator) & IS_OPEN & (func.coalesce(STEPS.c.at, EPISODES.c.at) < before)
    return _ends(connection, idle, "expired")


def open_ends(connection: Connection, run: str) -> list[Closed]:
    """Open episodes of a run, as they are to be closed."""
    return _ends(connection, EPISODES.c.run == run, "closed")


def _is_of(simulator: Digest | None) -> ColumnElement[bool]:
    return true() if simulator is None else RUNS.c.simulator == simulator


def _ends(
    connection: Connection, condition: ColumnElement[bool], reason: CloseReason
) -> list[Closed]:
    steps = STEPS.alias()
    newest = select(func.max(steps.c.number)).where(steps.c.episode == EPISODES.c.key)
    is_last = (STEPS.c.episode == EPISODES.c.key) & (STEPS.c.number == newest.scalar_subquery())
    columns = EPISODES.c["id", "run", "copied", "opening_digest"]
    open_ = (
        select(*columns, RUNS.c.simulator, STEPS.c.number, STEPS.c.head)
        .join(RUNS, RUNS.c.id == EPISODES.c.run)
        .outerjoin(STEPS, is_last)
        .where(EPISODES.c.closed.is_(None), condition)
    )
    return [_end(row, reason) for row in connection.execute(open_)]


def _end(row: Row[*tuple[object, ...]], reason: CloseReason) -> Closed:
    if row.number is not None:
        return Closed(row.run, row.id, row.number, row.head, reason)
    head = first_head(row.id, row.simulator, row.run, row.copied, row.opening_digest)
    return Closed(row.run, row.id, 0, head, reason)


def _opening(text: str | None) -> EpisodeOpening | None:
    """Raises ValueError, and StoreError where the text is not the opening's own."""
    if text is None:
        return None
    opening = EpisodeOpening.model_validate_json(text)
    if opening.text != text:
        raise StoreError("its opening was written anew, in another form", retryable=False)
    return opening


def _nothing(data: bytes | None, digest: Digest) -> None:
    """What is left of an erased text; raises StoreError where somebody put one there."""
    if data is not None:
        raise StoreError(f"the text {digest} was erased and is there; remove it", retryable=False)


def _episode(
    episode_row: Row[*tuple[object, ...]], steps: Iterable[Row[*tuple[object, ...]]], texts: Texts
) -> Episode:
    read = _nothing if episode_row.erased else texts.read
    return Episode(
        id=episode_row.id,
        simulator=episode_row.simulator,
        run=episode_row.run,
        opening=_opening(read(episode_row.opening, episode_row.opening_digest)),
        opening_digest=episode_row.opening_digest,
        num_copied=episode_row.copied,
        steps=tuple(_step(episode_row.id, row, read) for row in steps),
        closed=episode_row.closed,
    )


# In the order of EpisodeStep's fields: to find a column by its name takes as long as to read it.
_STEP = (
    *STEPS.c["episode", "number", "action", "observation", "action_digest", "observation_digest"],
    *STEPS.c["reward", "done", "truncated", "mean_logprob", "agreement", "low_confidence"],
    *STEPS.c["input_tokens", "cached_tokens", "output_tokens", "engine_seconds", "head"],
)


def _step(episode: str, row: Row[*tuple[Any, ...]], read: Reader) -> EpisodeStep:
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
