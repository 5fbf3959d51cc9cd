"""Orphan rows: a database with enforced foreign keys never has one."""

from collections.abc import Iterator

from sqlalchemy import Connection, ForeignKey, Select, func, select

from agentworld.ledger.tables import METADATA


def orphan_rows(connection: Connection) -> Iterator[str]:
    """A sentence for each row with a dangling reference."""
    for table in METADATA.sorted_tables:
        for key in sorted(table.foreign_keys, key=str):
            for value, rows in connection.execute(_unknown(key)):
                yield f"{rows} rows of {table} refer to {value!r}, which {key.column.table} lacks"


def _unknown(key: ForeignKey) -> Select[object, int]:
    own, target = key.parent, key.column
    return (
        select(own, func.count())
        .where(~select(target).where(target == own).exists())
        .group_by(own)
        .order_by(own)
    )
