"""Connections that keep what they committed, the newest schema, and a database's errors in our
words.

SQLite is for one machine; PostgreSQL for several replicas, any number of which may bring it to the
newest schema at once. No error shows a password.
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

# FULL: an answered step outlives a power cut. secure_delete: an erased text is gone from the file.
_PRAGMAS = ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON")

# The same for PostgreSQL, whatever its own configuration says.
# It may keep bytes without knowing what they mean (SQL_ASCII): they are UTF-8 all the same.
_SETTINGS = f"-c synchronous_commit=on -c lock_timeout={_BUSY_SECONDS}s -c client_encoding=UTF8"

# A server that vanished without a word is noticed; by default that takes two hours.
_NETWORK = {
    "connect_timeout": 10,
    "keepalives_idle": _BUSY_SECONDS,
    "tcp_user_timeout": _BUSY_SECONDS * 1_000,
}

# A server that does not let us in gives words and no code.
_REFUSAL = re.compile(
    "connection failed.*(authentication failed|no password supplied|does not exist|"
    "not permitted to log in|no pg_hba.conf entry)|invalid connection option"
)

_REVISIONS = "agentworld.ledger:migrations"

# The number is anyone's; all replicas must use the same.
_LOCKS = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(7340611)"}

# Alembic keeps the migration that it works on in its module.
_ALEMBIC = threading.Lock()

# What Alembic writes; to ask it for that takes as long as all else of opening a ledger.
_VERSION = table("alembic_version", column("version_num"))


def connect(url: str) -> Engine:
    """A pool of connections; nothing is opened yet. Raises InputError for what is no URL."""
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
    """A pool of connections; nothing is opened before the first transaction."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = connect(url)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Commits all that the block does, or nothing where it raises."""
        with translate_errors(self.url), self.engine.begin() as connection:
            yield connection


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Errors of the database as errors of ours, in one sentence each."""
    try:
        yield
    except DBAPIError as error:
        raise _translate_error(error, redact(url)) from error
    except SQLAlchemyError as error:
        raise StoreError(f"the ledger {redact(url)} failed: {error}") from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"the ledger {redact(url)} has no name like {error.object[:80]!r}, which is no Unicode;"
            " send another"
        ) from error


def bytes_of(value: object) -> bytes:
    """A column's bytes; none where somebody put a value of another type there, of which a number
    would otherwise become as many zeros.
    """
    return value if isinstance(value, bytes) else b""


def migrate(engine: Engine) -> None:
    """Makes or changes the tables; raises Conflict for a database that it does not know.

    One transaction under a lock: who comes second finds the work done, and a migration that was
    killed left the schema as it had been.
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
        # Not `from` the error, which may quote what stands where the password ends.
        raise _no_url(url) from None
    is_supported = parsed.drivername in ("sqlite", "postgresql", "postgresql+psycopg")
    if not is_supported or "@" in (parsed.host or ""):
        raise _no_url(url)
    return parsed


def _no_url(url: str) -> InputError:
    return InputError(
        f"{redact(url)!r} is no database URL; give sqlite:////path/ledger.db or"
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
    """Lets readers not wait for the writer; the file keeps this mode.

    Two that change the mode of a new file at once bar each other's way, and SQLite refuses
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
    return create_engine(
        url,
        hide_parameters=True,
        pool_pre_ping=True,  # a connection that a restarted server dropped is not handed out
        connect_args={**_NETWORK, "options": options},
    )


def _translate_error(error: DBAPIError, url: str) -> AgentworldError:
    message = str(error.orig).strip().partition("\n")[0]
    if isinstance(error, IntegrityError):
        return Conflict(f"the ledger already holds this, or not what it names: {message}")
    if isinstance(error, DataError):
        return InputError(f"the ledger {url} cannot hold this: {message}; send another value")
    if "not a database" in message:
        return InputError(f"{url} is no database; name a new file or a ledger")
    if _REFUSAL.search(message):
        return InputError(f"{url} does not let the ledger in: {message}; check user and password")
    passes = isinstance(error, OperationalError | InterfaceError)
    return StoreError(f"the ledger {url} failed: {message}", retryable=passes)


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


def _check_known(connection: Connection, revisions: ScriptDirectory) -> None:
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
