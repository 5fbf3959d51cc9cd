"""Erases texts: first from the rows, then from the object store if no row needs them.

Both steps can be repeated after an interruption.
"""

from sqlalchemy import Connection, ScalarSelect, func, select, update

from agentworld.errors import Conflict, NotFound
from agentworld.ledger.attestations import keep
from agentworld.ledger.lost import is_lost
from agentworld.ledger.rows import change_rows, hold
from agentworld.ledger.tables import ALIASES, ATTESTATIONS, EPISODES, RUNS, STEPS
from agentworld.ledger.texts import Texts
from agentworld.records.base import Digest, now
from agentworld.records.statements.base import Declare
from agentworld.records.statements.erasure import Erasure

# Each text, its digest, and the key of its episode.
_TEXTS = (
    (EPISODES.c.opening, EPISODES.c.opening_digest, EPISODES.c.key),
    (STEPS.c.action, STEPS.c.action_digest, STEPS.c.episode),
    (STEPS.c.observation, STEPS.c.observation_digest, STEPS.c.episode),
)


def texts_outside_rows(connection: Connection, episode: str) -> set[Digest]:
    """An episode's texts that are not in their rows: long ones and erased ones."""
    key = _key(episode)
    return {
        digest
        for column, digests, owner in _TEXTS
        for digest in connection.scalars(select(digests).where(owner == key, column.is_(None)))
    }


def erase_rows(connection: Connection, episode: str) -> None:
    """Removes the texts from an episode's rows and marks it as erased.

    Raises NotFound, and Conflict for an open episode.
    """
    key = _key(episode)
    query = select(EPISODES.c.closed, EPISODES.c.run).where(EPISODES.c.key == key)
    row = connection.execute(query).first()
    if row is None:
        raise NotFound(
            f"there is no episode {episode}; name one that `agentworld episode list RUN` prints"
        )
    # An episode of a run that lost entries is never closed.
    if row.closed is None and not is_lost(connection, row.run):
        raise Conflict(f"episode {episode} is open; close it before you erase it")
    mark_erased = update(EPISODES).where(EPISODES.c.key == key).values(erased=True, source=None)
    change_rows(connection, mark_erased)
    for column, _, owner in _TEXTS:
        num_rows = connection.scalar(select(func.count()).where(owner == key)) or 0
        clear_text = update(column.table).where(owner == key).values({column: None})
        change_rows(connection, clear_text, num_rows)


def declare_erasure(connection: Connection, episode: str, by: str, declare: Declare) -> None:
    """Stores a signed statement of the erasure, unless there is one."""
    condition = (ATTESTATIONS.c.kind == "erasure") & (ATTESTATIONS.c.subject == episode)
    if connection.scalar(select(ATTESTATIONS.c.sequence).where(condition).limit(1)) is not None:
        return
    query = select(EPISODES.c.run, EPISODES.c.opening_digest, RUNS.c.simulator)
    joined_query = query.join(RUNS, RUNS.c.id == EPISODES.c.run).where(EPISODES.c.id == episode)
    run, opening, simulator = connection.execute(joined_query).one()
    at = now()
    erasure = Erasure(episode=episode, run=run, simulator=simulator, opening=opening, by=by, at=at)
    keep(connection, declare(erasure))


def erase_object(connection: Connection, digest: Digest, texts: Texts) -> None:
    """Deletes a long text unless an episode that was not erased uses it, or it is the manifest of
    a run's simulator or the report of an alias's move, which are in the same object store.

    Until the transaction ends, no row that refers to it can be added.
    """
    # Every writer first changes a row of `runs`, so this statement waits for all of them.
    hold(connection, RUNS)
    if not _is_text(connection, digest) and not _is_record(connection, digest):
        texts.erase(digest)


def _is_text(connection: Connection, digest: Digest) -> bool:
    others = EPISODES.alias()
    return any(
        connection.scalar(
            select(owner)
            .where(digests == digest, column.is_(None))
            .where(~select(others.c.key).where(others.c.key == owner, others.c.erased).exists())
            .limit(1)
        )
        is not None
        for column, digests, owner in _TEXTS
    )


def _is_record(connection: Connection, digest: Digest) -> bool:
    return any(
        connection.scalar(select(column).where(column == digest).limit(1)) is not None
        for column in (RUNS.c.simulator, ALIASES.c.report)
    )


def _key(episode: str) -> ScalarSelect[int]:
    return select(EPISODES.c.key).where(EPISODES.c.id == episode).scalar_subquery()
