"""SQLite's statements, compiled once for all ledgers of a process.

An engine compiles each statement once, and each ledger has its own engine. Test processes have many
ledgers, and would compile the same statements ten thousand times.
"""

from functools import cache
from typing import Any

from sqlalchemy import Dialect, Engine

from agentworld.ledger import database

_compiled: dict[Any, Any] = {}
_connect = database.connect


def connect(url: str) -> Engine:
    """Replaces `agentworld.ledger.database.connect`."""
    engine = _connect(url)
    if engine.dialect.name == "sqlite":
        engine.update_execution_options(compiled_cache=_compiled)
        engine.dialect = _dialect()  # the dialect caches compiled statements
    return engine


@cache
def _dialect() -> Dialect:
    """An initialised dialect, as each engine has one."""
    engine = _connect("sqlite://")
    engine.connect().close()
    return engine.dialect
