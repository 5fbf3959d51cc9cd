from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

import pytest
from sqlalchemy import text

from agentworld.errors import Conflict, InputError, StoreError
from agentworld.ledger import Ledger
from agentworld.ledger.database import connect, translate_errors
from make import records
from waiting import DEADLINE

SECRET = "hidden"


@contextmanager
def open_engine(url):
    engine = connect(url)
    try:
        yield engine
    finally:
        engine.dispose()


def query(engine, statement, **values):
    with engine.connect() as connection:
        return connection.execute(text(statement), values).scalar()


def catch_error(url, statement="SELECT 1", **values):
    """Returns the error that a statement raises."""
    with (
        pytest.raises((InputError, StoreError)) as error,
        translate_errors(url),
        open_engine(url) as engine,
    ):
        query(engine, statement, **values)
    assert "\n" not in str(error.value)
    assert SECRET not in str(error.value)
    return error.value


def test_sqlite_uses_wal_full_synchronization_and_foreign_keys(tmp_path):
    with open_engine(f"sqlite:///{tmp_path / 'ledger.db'}") as engine:
        assert query(engine, "PRAGMA journal_mode") == "wal"
        assert query(engine, "PRAGMA synchronous") == 2
        assert query(engine, "PRAGMA foreign_keys") == 1


@pytest.mark.waits
def test_many_connections_can_open_a_new_sqlite_file_at_once(tmp_path):
    # Without a second try, about one in fifteen of these files refuses a connection.
    for file in range(60):
        barrier = Barrier(8, timeout=DEADLINE)

        def open_file(_, url=f"sqlite:///{tmp_path}/{file}.db", barrier=barrier):
            engine = connect(url)
            barrier.wait()
            with engine.connect() as connection:
                mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
            engine.dispose()
            return mode

        with ThreadPoolExecutor(8) as executor:
            assert set(executor.map(open_file, range(8))) == {"wal"}


@pytest.mark.waits
def test_postgresql_commits_synchronously_even_if_the_database_default_is_off(postgres_url):
    with open_engine(postgres_url) as admin_engine, admin_engine.begin() as connection:
        name = admin_engine.url.database
        connection.execute(text(f"ALTER DATABASE {name} SET synchronous_commit=off"))
    with open_engine(postgres_url) as engine:
        assert query(engine, "SHOW synchronous_commit") == "on"
        assert query(engine, "SHOW fsync") == "on"


@pytest.mark.waits
def test_postgresql_connections_have_a_lock_timeout_and_keep_url_options(postgres_url):
    with open_engine(postgres_url + "?options=-c%20statement_timeout%3D7s") as engine:
        assert query(engine, "SHOW lock_timeout") == "30s"
        assert query(engine, "SHOW statement_timeout") == "7s"


def test_inserting_an_existing_key_raises_a_conflict(url):
    with open_engine(url) as engine:
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE a (b INTEGER PRIMARY KEY)"))
            connection.execute(text("INSERT INTO a VALUES (1)"))
        with (
            pytest.raises(Conflict, match=r"already holds this.*(a\.b|a_pkey)") as error,
            translate_errors(url),
        ):
            query(engine, "INSERT INTO a VALUES (1)")
    assert "\n" not in str(error.value)


def test_a_wrong_statement_is_retryable_only_on_sqlite_and_shows_no_values(url):
    error = catch_error(url, "SELECT nosuch WHERE 'x' = :value", value=SECRET)
    assert isinstance(error, StoreError)
    assert "nosuch" in str(error)
    assert error.retryable == url.startswith("sqlite")


@pytest.mark.waits
@pytest.mark.parametrize(
    "parts",
    [{"password": SECRET}, {"password": ""}, {"username": "anna"}, {"database": "nosuch"}],
    ids=lambda parts: next(iter(parts)) + " " + next(iter(parts.values())),
)
def test_a_refused_postgresql_connection_raises_an_input_error(postgres_server, parts):
    error = catch_error(postgres_server.url(**{"database": "postgres", **parts}))
    assert isinstance(error, InputError)
    assert "refused the connection" in str(error)
    assert postgres_server.password not in str(error)


@pytest.mark.waits
def test_an_unreachable_server_raises_a_retryable_error():
    error = catch_error(f"postgresql://anna:{SECRET}@127.0.0.1:1/ledger")
    assert isinstance(error, StoreError)
    assert error.retryable
    assert "postgresql://anna:***@127.0.0.1:1/ledger failed: " in str(error)
    assert "Connection refused" in str(error)


@pytest.mark.waits
def test_a_lost_connection_raises_a_retryable_error(postgres_url):
    error = catch_error(postgres_url, "SELECT pg_terminate_backend(pg_backend_pid())")
    assert isinstance(error, StoreError)
    assert error.retryable


@pytest.mark.waits
def test_a_broken_idle_connection_is_not_reused(postgres_url):
    with open_engine(postgres_url) as engine, open_engine(postgres_url) as other_engine:
        backend = query(engine, "SELECT pg_backend_pid()")
        query(other_engine, "SELECT pg_terminate_backend(:backend, 1000)", backend=backend)
        assert query(engine, "SELECT pg_backend_pid()") != backend


@pytest.mark.waits
def test_connections_to_a_read_only_server_raise_a_retryable_error_and_are_not_reused(postgres_url):
    with open_engine(postgres_url) as engine:
        demote = "SET default_transaction_read_only=on"
        with engine.begin() as connection, engine.begin() as other_connection:
            connection.exec_driver_sql(demote)
            other_connection.exec_driver_sql(demote)
        create = "CREATE TABLE a (b INTEGER)"
        with pytest.raises(StoreError, match="read-only") as error, translate_errors(postgres_url):
            query(engine, create)
        assert error.value.retryable
        with engine.connect() as connection, engine.connect() as other_connection:
            connection.exec_driver_sql(create)
            other_connection.exec_driver_sql("CREATE TABLE c (d INTEGER)")


@pytest.mark.waits
def test_a_value_that_postgresql_cannot_store_raises_an_input_error(postgres_url):
    error = catch_error(postgres_url, "SELECT CAST(:value AS TEXT)", value="\x00")
    assert isinstance(error, InputError)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://anna:{SECRET}@host:port/ledger",
        f"postgresql://anna:a@{SECRET}@host/ledger",
        f"postgresql://anna:a@b:{SECRET}@host/ledger",
        f"postgres://anna:{SECRET}@host/ledger",
        f"nosuch://anna:{SECRET}@host/ledger",
        f"mysql://anna:{SECRET}@host/ledger?password={SECRET}",
        f"anna:{SECRET}@host/://",
    ],
)
def test_the_error_for_an_invalid_url_does_not_show_the_password(url):
    error = catch_error(url)
    assert "is not a database URL; give" in str(error)
    assert error.__cause__ is None


@pytest.mark.waits
def test_the_error_for_an_unknown_connection_option_names_the_option():
    error = catch_error(f"postgresql://anna:{SECRET}@127.0.0.1:1/ledger?nosuch=1")
    assert isinstance(error, InputError)
    assert 'invalid connection option "nosuch"' in str(error)


@pytest.mark.waits
def test_a_postgresql_database_without_an_encoding_stores_unicode_texts(postgres_server):
    options = "ENCODING SQL_ASCII TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    with postgres_server.database(options) as url:
        ledger = Ledger(url)
        ledger.aliases.set("stable", records.digest("one"), "jo\u00e3o")
        assert ledger.aliases.history()[0].set_by == "jo\u00e3o"
        ledger.close()
