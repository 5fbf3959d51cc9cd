"""Which episode a fork or a replay starts from, in its row: nobody reads all openings for that."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_EPISODES = sa.table(
    "episodes",
    sa.column("key", sa.BigInteger),
    sa.column("opening", sa.LargeBinary),
    sa.column("source", sa.String),
)
_WAYS = "fork", "replay"
_AT_ONCE = 2_000
"""Openings that are held in memory."""
_HAS = {"sqlite": "instr(opening, {})", "postgresql": "position({} in opening)"}
_BYTES = {"sqlite": "X'{}'", "postgresql": "'\\x{}'::bytea"}


def upgrade() -> None:
    """Of those whose openings are in the object store, which a migration does not reach, and of
    erased ones it stays untold.
    """
    op.add_column("episodes", sa.Column("source", sa.String))
    connection = op.get_bind()
    dialect = connection.dialect.name
    there = [_HAS[dialect].format(_BYTES[dialect].format(_begin(way).hex())) for way in _WAYS]
    some = sa.or_(*(sa.text(f"{each} > 0") for each in there))
    query = sa.select(_EPISODES.c.key, _EPISODES.c.opening).where(some).order_by(_EPISODES.c.key)
    last = -1
    while rows := connection.execute(query.where(_EPISODES.c.key > last).limit(_AT_ONCE)).all():
        last = rows[-1].key
        parameters = [{"of": key, "from": _source(bytes(opening))} for key, opening in rows]
        own = sa.update(_EPISODES).where(_EPISODES.c.key == sa.bindparam("of"))
        connection.execute(own.values(source=sa.bindparam("from")), parameters)
    has_source = _EPISODES.c.source.is_not(None)
    op.create_index(
        "episodes_of_source",
        "episodes",
        ["source"],
        sqlite_where=has_source,
        postgresql_where=has_source,
    )


def _begin(way: str) -> bytes:
    """As canonical JSON writes it, which an opening is."""
    return f'"{way}":{{"episode":"'.encode()


def _source(opening: bytes) -> str | None:
    """Null where somebody garbled it, which a verification says."""
    try:
        fields = json.loads(opening.decode("utf-8", "surrogatepass"))
        return next((str(fields[way]["episode"]) for way in _WAYS if way in fields), None)
    except (ValueError, TypeError, KeyError):
        return None
