"""Durable connections, schema migration, and translation of database errors.

SQLite is for one machine, PostgreSQL for several replicas, which may migrate the schema at the same
time. No error shows a password.
"""

import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import (
    URL,
    Connection,
    Engine,
    ExceptionContext,
    column,
    create_engine,
    event,
    inspect,
    make_url,
    select,
    table,
)
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)

from agentworld.errors import AgentworldError, Conflict, InputError, StoreError
from agentworld.ledger.tables import RUNS
from agentworld.records.file import check_sqlite
from agentworld.records.garbled import any_text, redact

_BUSY_SECONDS = 30

_RETRY_SECONDS = 0.01

# FULL: a committed step survives a power failure. secure_delete: an erased text is overwritten in
# the file.
_PRAGMAS = ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON")

# The same for PostgreSQL, independent of its configuration. A database with the encoding SQL_ASCII
# stores bytes without conversion; they are always UTF-8.
_SETTINGS = f"-c synchronous_commit=on -c lock_timeout={_BUSY_SECONDS}s -c client_encoding=UTF8"

# Detects a server that disappeared without closing; the default takes two hours.
_NETWORK = {
    "connect_timeout": 10,
    "keepalives_idle": _BUSY_SECONDS,
    "tcp_user_timeout": _BUSY_SECONDS * 1_000,
}

# A server that refuses a connection returns a message without a code.
_REFUSAL = re.compile(
    "connection failed.*(authentication failed|no password supplied|does not exist|"
    "not permitted to log in|no pg_hba.conf entry)|invalid connection option"
)

# The error of a write on a server that is no longer the primary.
_READ_ONLY = "25006"

_REVISIONS = "agentworld.ledger:migrations"

# An arbitrary number; all replicas must use the same one.
_LOCKS = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(7340611)"}

# Alembic keeps the current migration in a module's global.
_ALEMBIC = threading.Lock()

# The table that Alembic writes; asking Alembic for it takes as long as the rest of opening a
# ledger.
_VERSION = table("alembic_version", column("version_num"))


def connect(url: str) -> Engine:
    """Creates a connection pool without connecting. Raises InputError for an invalid URL."""
    parsed_url = _parse_url(url)
    try:
        if parsed_url.drivername == "sqlite":
            return _sqlite(parsed_url)
        return _postgresql(parsed_url)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{redact(url)} needs the package {error.name}; install agentworld[postgres]"
        ) from error


class Database:
    """A connection pool; the first transaction opens the first connection."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = connect(url)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Commits the block's changes, or none of them if it raises."""
        with translate_errors(self.url), self.engine.begin() as connection:
            yield connection


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Converts database errors to our errors, each with one sentence."""
    try:
        yield
    except DBAPIError as error:
        raise _translate_error(error, redact(url)) from error
    except SQLAlchemyError as error:
        raise StoreError(f"the ledger {redact(url)} failed: {error}") from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"the ledger {redact(url)} has no name like {error.object[:80]!r}, which is not"
            " Unicode; use another name"
        ) from error


def bytes_of(value: object) -> bytes:
    """A column's bytes; empty if its value is of another type: bytes() of a number would return as
    many zeros.
    """
    return value if isinstance(value, bytes) else b""


def migrate(engine: Engine) -> None:
    """Creates or upgrades the tables; raises Conflict for an unknown schema.

    Runs in one transaction under a lock: the second caller finds the work done, and a killed
    migration leaves the schema unchanged.
    """
    revisions = _revisions(_REVISIONS)
    with translate_errors(_url(engine)):
        with engine.connect() as connection:
            if _revision(connection) == revisions.get_current_head():
                return
        with _ALEMBIC, _hold_lock(engine) as connection:
            _check_known(connection, revisions)
            config = Config(attributes={"connection": connection})
            config.set_main_option("script_location", _REVISIONS)
            command.upgrade(config, "head")


def _parse_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # Not `from` the error, which may quote part of the password.
        raise _no_url(url) from None
    is_supported = parsed.drivername in ("sqlite", "postgresql", "postgresql+psycopg")
    if not is_supported or "@" in (parsed.host or ""):
        raise _no_url(url)
    return parsed


def _no_url(url: str) -> InputError:
    return InputError(
        f"{redact(url)!r} is not a database URL; give sqlite:////path/ledger.db or"
        " postgresql://user:password@host/name, with %40 for an @ in the password"
    )


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, hide_parameters=True, connect_args={"timeout": _BUSY_SECONDS})
    if url.database:
        path = Path(url.database)
        event.listen(engine, "do_connect", lambda *_: check_sqlite(path))
    event.listen(engine, "connect", lambda connection, entry: _set_pragmas(connection))
    return engine


def _set_pragmas(connection: sqlite3.Connection) -> None:
    connection.text_factory = any_text
    cursor = connection.cursor()
    _enter_wal(cursor)
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _enter_wal(cursor: sqlite3.Cursor) -> None:
    """Enables write-ahead logging, so readers do not wait for the writer; the mode is stored in the
    file.

    Two connections that change the mode of a new file at once block each other, and SQLite refuses
    one of them without waiting for its time-out.
    """
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)


def _postgresql(url: URL) -> Engine:
    options = " ".join([*url.normalized_query.get("options", ()), _SETTINGS])
    engine = create_engine(
        url,
        hide_parameters=True,
        pool_pre_ping=True,  # a connection that a restarted server dropped is not handed out
        connect_args={**_NETWORK, "options": options},
    )
    event.listen(engine, "handle_error", _drop_read_only)
    return engine


def _drop_read_only(context: ExceptionContext) -> None:
    """Drops the pool's connections after a failover, because they are still to the old primary."""
    if getattr(context.original_exception, "sqlstate", None) == _READ_ONLY:
        context.is_disconnect = True


def _translate_error(error: DBAPIError, url: str) -> AgentworldError:
    message = str(error.orig).strip().partition("\n")[0]
    if isinstance(error, IntegrityError):
        return Conflict(f"the ledger already holds this, or lacks what it refers to: {message}")
    if isinstance(error, DataError):
        return InputError(
            f"the ledger {url} cannot store this value: {message}; send another value"
        )
    if "not a database" in message:
        return InputError(f"{url} is not a database; name a new file or a ledger")
    if _REFUSAL.search(message):
        return InputError(f"{url} refused the connection: {message}; check user and password")
    passes = error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)
    return StoreError(f"the ledger {url} failed: {message}", retryable=passes)


@cache
def _revisions(location: str) -> ScriptDirectory:
    """Cached: reading the revisions takes as long as opening a database that is up to date."""
    config = Config()
    config.set_main_option("script_location", location)
    revisions = ScriptDirectory.from_config(config)
    revisions.get_current_head()  # reads them before other threads use them
    return revisions


@contextmanager
def _hold_lock(engine: Engine) -> Iterator[Connection]:
    """A transaction that holds the migration lock."""
    with engine.begin() as connection:
        connection.exec_driver_sql(_LOCKS[connection.dialect.name])
        yield connection


def _check_known(connection: Connection, revisions: ScriptDirectory) -> None:
    revision = _revision(connection)
    url = redact(_url(connection.engine))
    if revision is None and inspect(connection).has_table(RUNS.name):
        raise Conflict(f"{url} has tables of an unknown schema; name another database")
    revision_ids = {script.revision for script in revisions.walk_revisions()}
    if revision is not None and revision not in revision_ids:
        raise Conflict(
            f"the ledger {url} has revision {revision}, which this version of agentworld does not"
            " know; use the version that created it, or a later one"
        )


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_VERSION.name):
        return None
    return connection.scalars(select(_VERSION)).one_or_none()


def _url(engine: Engine) -> str:
    return engine.url.render_as_string()
