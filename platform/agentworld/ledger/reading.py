"""From rows to records."""

from collections.abc import Mapping

from sqlalchemy import Connection, Row, RowMapping, Select, func, select
from sqlalchemy.sql.elements import ColumnElement

from agentworld.ledger.tables import CHECKPOINTS, EPISODES, LOG, RUNS, STEPS
from agentworld.ledger.texts import Texts
from agentworld.ledger.writes import Closed
from agentworld.records.base import Digest
from agentworld.records.episode import Confidence, Episode, EpisodeOpening, EpisodeStep
from agentworld.records.log import LogEntry
from agentworld.records.run import AgentRun, RunClosing, RunOpening


def runs(connection: Connection, columns: Mapping[str, str]) -> list[AgentRun]:
    """Runs whose columns hold these values, the newest first."""
    wanted = [RUNS.c[name] == value for name, value in columns.items()]
    return [_run(row) for row in connection.execute(_counted_runs(wanted)).mappings()]


def episode(connection: Connection, name: str, texts: Texts) -> Episode | None:
    """An episode with its steps."""
    opened = connection.execute(
        select(EPISODES.c.key, EPISODES.c.opening, EPISODES.c.closed, RUNS.c.simulator)
        .join(RUNS, RUNS.c.id == EPISODES.c.run)
        .where(EPISODES.c.id == name)
    ).first()
    if opened is None:
        return None
    wanted = select(STEPS).where(STEPS.c.episode == opened.key).order_by(STEPS.c.number)
    steps = tuple(_step(name, row, texts) for row in connection.execute(wanted))
    opening = EpisodeOpening.model_validate_json(opened.opening)
    return Episode(name, opened.simulator, opening, steps, opened.closed)


def episode_names(connection: Connection, run: str) -> list[str]:
    """A run's episodes as the log tells their order."""
    opened = (entry.fields for entry in log(connection, run))
    return [str(told["episode"]) for told in opened if told["kind"] == "episode-opened"]


def log(connection: Connection, run: str, after: int = 0) -> list[LogEntry]:
    """A run's log in its order."""
    wanted = select(LOG).where(LOG.c.run == run, LOG.c.sequence > after)
    rows = connection.execute(wanted.order_by(LOG.c.sequence))
    return [LogEntry(row.run, row.sequence, bytes(row.body)) for row in rows]


def heads_by_entry(connection: Connection, run: str) -> dict[int, list[Digest]]:
    """The heads of a run's steps, by the log entry that covers them and in its order."""
    heads = (
        select(STEPS.c.entry, STEPS.c.head)
        .join(EPISODES, EPISODES.c.key == STEPS.c.episode)
        .where(EPISODES.c.run == run)
        .order_by(STEPS.c.entry, STEPS.c.place)
    )
    found: dict[int, list[Digest]] = {}
    for entry, head in connection.execute(heads):
        found.setdefault(entry, []).append(head)
    return found


def unsealed(connection: Connection, simulator: Digest) -> list[str]:
    """Runs whose logs are longer than their last checkpoint."""
    last = select(func.coalesce(func.max(CHECKPOINTS.c.length), 0)).where(
        CHECKPOINTS.c.run == RUNS.c.id
    )
    grown = select(RUNS.c.id).where(
        RUNS.c.simulator == simulator, RUNS.c.length > last.scalar_subquery()
    )
    return list(connection.scalars(grown))


def checkpoints(connection: Connection, run: str) -> dict[int, bytes]:
    """Signed checkpoints by their lengths."""
    rows = connection.execute(
        select(CHECKPOINTS.c.length, CHECKPOINTS.c.envelope).where(CHECKPOINTS.c.run == run)
    )
    return {row.length: bytes(row.envelope) for row in rows}


def idle_episodes(connection: Connection, simulator: Digest, before: float) -> list[Closed]:
    """Open episodes of open runs without a step since `before`, as they are to be closed."""
    steps = STEPS.alias()
    newest = select(func.max(steps.c.number)).where(steps.c.episode == EPISODES.c.key)
    is_last = (STEPS.c.episode == EPISODES.c.key) & (STEPS.c.number == newest.scalar_subquery())
    idle = (
        select(EPISODES.c.id, EPISODES.c.run, EPISODES.c.opening, STEPS.c.number, STEPS.c.head)
        .join(RUNS, RUNS.c.id == EPISODES.c.run)
        .outerjoin(STEPS, is_last)
        .where(
            RUNS.c.simulator == simulator,
            RUNS.c.final_weights.is_(None),
            EPISODES.c.closed.is_(None),
            func.coalesce(STEPS.c.at, EPISODES.c.at) < before,
        )
    )
    return [_expired(row, simulator) for row in connection.execute(idle)]


def steps_of(episode: str) -> ColumnElement[bool]:
    """The condition for the steps of an episode."""
    key = select(EPISODES.c.key).where(EPISODES.c.id == episode)
    return STEPS.c.episode == key.scalar_subquery()


def text_digests(connection: Connection, condition: ColumnElement[bool]) -> set[Digest]:
    """Digests of the texts of some steps."""
    rows = connection.execute(
        select(STEPS.c.action_digest, STEPS.c.observation_digest).where(condition)
    )
    return {digest for row in rows for digest in row}


def digests_elsewhere(
    connection: Connection, steps: ColumnElement[bool], digests: set[Digest]
) -> set[Digest]:
    """Those that other steps hold too."""
    others = ~steps & (STEPS.c.action_digest.in_(digests) | STEPS.c.observation_digest.in_(digests))
    return text_digests(connection, others) & digests


def _run(row: RowMapping) -> AgentRun:
    weights = row["final_weights"]
    closing = RunClosing(final_weights=weights, signature=row["signature"]) if weights else None
    return AgentRun(
        id=row["id"],
        opening=RunOpening.model_validate_json(row["opening"]),
        simulator=row["simulator"],
        closing=closing,
        num_episodes=row["num_episodes"],
        num_steps=row["num_steps"],
        log_length=row["length"],
    )


def _counted_runs(wanted: list[ColumnElement[bool]]) -> Select[*tuple[object, ...]]:
    return (
        select(
            RUNS,
            func.count(EPISODES.c.key.distinct()).label("num_episodes"),
            func.count(STEPS.c.number).label("num_steps"),
        )
        .outerjoin(EPISODES, EPISODES.c.run == RUNS.c.id)
        .outerjoin(STEPS, STEPS.c.episode == EPISODES.c.key)
        .where(*wanted)
        .group_by(RUNS.c.id)
        .order_by(RUNS.c.id)
    )


def _expired(row: Row[*tuple[object, ...]], simulator: Digest) -> Closed:
    if row.number is not None:
        return Closed(row.run, row.id, row.number, row.head, "expired")
    opening = EpisodeOpening.model_validate_json(row.opening)
    return Closed(row.run, row.id, 0, Episode(row.id, simulator, opening).first_head, "expired")


def _step(episode: str, row: Row[*tuple[object, ...]], texts: Texts) -> EpisodeStep:
    return EpisodeStep(
        episode=episode,
        number=row.number,
        action=texts.read(row.action, row.action_digest),
        observation=texts.read(row.observation, row.observation_digest),
        action_digest=row.action_digest,
        observation_digest=row.observation_digest,
        reward=row.reward,
        done=row.done,
        truncated=row.truncated,
        confidence=Confidence(row.mean_logprob, row.agreement, row.low_confidence),
        head=row.head,
    )
