"""SQLite's statements, compiled once for all ledgers of a process.

An engine compiles each statement once, and each ledger has an engine of its own. A process has few
ledgers, but for that of tests, which would compile the same ten thousand times.
"""

from functools import cache
from typing import Any

from sqlalchemy import Dialect, Engine

from agentworld.ledger import database

_compiled: dict[Any, Any] = {}
_connect = database.connect


def connect(url: str) -> Engine:
    """Stands in for `agentworld.ledger.database.connect`."""
    engine = _connect(url)
    if engine.dialect.name == "sqlite":
        engine.update_execution_options(compiled_cache=_compiled)
        engine.dialect = _dialect()  # what is compiled is kept by its dialect
    return engine


@cache
def _dialect() -> Dialect:
    """That has seen a database, as the one of each engine does."""
    engine = _connect("sqlite://")
    engine.connect().close()
    return engine.dialect
