"""Brings a database to the newest schema, however many replicas ask for it at once.

One transaction under a lock: who comes second finds the work done, and a migration that was
killed left the schema as it had been.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, column, inspect, select, table

from agentworld.errors import Conflict
from agentworld.ledger.database import translate_errors
from agentworld.ledger.tables import RUNS
from agentworld.storage.address import redact

_REVISIONS = "agentworld.ledger:migrations"

# The number is anyone's; all replicas must use the same.
_LOCKS = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(7340611)"}

# Alembic keeps the migration that it works on in its module.
_ALEMBIC = threading.Lock()

# What Alembic writes; to ask it for that takes as long as all else of opening a ledger.
_VERSION = table("alembic_version", column("version_num"))


def migrate(engine: Engine) -> None:
    """Makes or changes the tables; raises Conflict for a database that it does not know."""
    revisions = _revisions(_REVISIONS)
    with translate_errors(_url(engine)):
        with engine.connect() as connection:
            if _revision(connection) == revisions.get_current_head():
                return
        with _ALEMBIC, _hold_lock(engine) as connection:
            _check(connection, revisions)
            config = Config(attributes={"connection": connection})
            config.set_main_option("script_location", _REVISIONS)
            command.upgrade(config, "head")


@cache
def _revisions(location: str) -> ScriptDirectory:
    """Read once: to read them takes as long as to open a database that needs none."""
    config = Config()
    config.set_main_option("script_location", location)
    revisions = ScriptDirectory.from_config(config)
    revisions.get_current_head()  # reads them, before another thread has hold of them
    return revisions


@contextmanager
def _hold_lock(engine: Engine) -> Iterator[Connection]:
    """A transaction that one migration at a time is in."""
    with engine.begin() as connection:
        connection.exec_driver_sql(_LOCKS[connection.dialect.name])
        yield connection


def _check(connection: Connection, revisions: ScriptDirectory) -> None:
    revision = _revision(connection)
    url = redact(_url(connection.engine))
    if revision is None and inspect(connection).has_table(RUNS.name):
        raise Conflict(f"{url} holds tables of an unknown schema; name another database")
    revision_ids = {script.revision for script in revisions.walk_revisions()}
    if revision is not None and revision not in revision_ids:
        raise Conflict(
            f"the ledger {url} is of revision {revision}, which this agentworld does not know; use"
            " the one that made it, or a later one"
        )


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_VERSION.name):
        return None
    return connection.scalars(select(_VERSION)).one_or_none()


def _url(engine: Engine) -> str:
    return engine.url.render_as_string()
