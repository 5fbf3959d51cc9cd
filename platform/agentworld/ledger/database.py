"""A database connection that is durable, and its errors in our words."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, SQLAlchemyError

from agentworld.errors import Conflict, InputError, StoreError

_BUSY_SECONDS = 30

# FULL: an answered step outlives a power cut. WAL: readers do not wait for the writer.
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")


def connect(url: str) -> Engine:
    """A pool of connections; nothing is opened yet. Raises InputError for what is no URL."""
    try:
        sqlite = url.startswith("sqlite")
        engine = create_engine(url, connect_args={"timeout": _BUSY_SECONDS} if sqlite else {})
    except (ArgumentError, ModuleNotFoundError) as error:
        raise InputError(
            f"{url!r} is no database URL ({error}); give one such as sqlite:////path/ledger.db"
        ) from error
    if sqlite:
        event.listen(engine, "connect", lambda connection, entry: _set_pragmas(connection))
    return engine


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Errors of the database as errors of ours, in one sentence each."""
    try:
        yield
    except IntegrityError as error:
        raise Conflict(
            f"the ledger already holds this, or not what it names: {error.orig}"
        ) from error
    except DatabaseError as error:
        if "not a database" in str(error.orig):
            raise InputError(f"{url} is no database; name a new file or a ledger") from error
        raise StoreError(f"the ledger {url} failed: {error.orig}") from error
    except SQLAlchemyError as error:
        raise StoreError(f"the ledger {url} failed: {error}") from error


def _set_pragmas(connection: DBAPIConnection) -> None:
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
