"""Taking away what was said: rows lose their texts, and the object store what no row names more."""

from collections.abc import Iterator

from sqlalchemy import Connection, ScalarSelect, select, text, update

from agentworld.ledger.tables import EPISODES, STEPS
from agentworld.ledger.texts import Texts
from agentworld.records.base import Digest

# Each text, its digest, and the key of the episode that it belongs to.
_TEXTS = (
    (EPISODES.c.opening, EPISODES.c.opening_digest, EPISODES.c.key),
    (STEPS.c.action, STEPS.c.action_digest, STEPS.c.episode),
    (STEPS.c.observation, STEPS.c.observation_digest, STEPS.c.episode),
)


def erase(connection: Connection, episode: str, texts: Texts) -> None:
    """Erases the texts of a closed episode.

    Until the transaction ends nobody else adds a row: one of the same text would lose it.
    """
    key = select(EPISODES.c.key).where(EPISODES.c.id == episode).scalar_subquery()
    if connection.dialect.name == "postgresql":  # SQLite has one writer at a time
        connection.execute(text("LOCK TABLE episodes, steps IN SHARE ROW EXCLUSIVE MODE"))
    not_in_row = set(_not_in_row(connection, key))
    connection.execute(update(EPISODES).where(EPISODES.c.key == key).values(erased=True))
    for column, _, owner in _TEXTS:
        connection.execute(update(column.table).where(owner == key).values({column: None}))
    texts.erase(not_in_row - set(_named_elsewhere(connection, key, not_in_row)))


def _not_in_row(connection: Connection, key: ScalarSelect[int]) -> Iterator[Digest]:
    for column, digest, owner in _TEXTS:
        yield from connection.scalars(select(digest).where(owner == key, column.is_(None)))


def _named_elsewhere(
    connection: Connection, key: ScalarSelect[int], digests: set[Digest]
) -> Iterator[Digest]:
    """Those that other episodes hold too."""
    for _, digest, owner in _TEXTS:
        yield from connection.scalars(select(digest).where(owner != key, digest.in_(digests)))
