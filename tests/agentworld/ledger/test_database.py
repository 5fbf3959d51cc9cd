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
def opened(url):
    engine = connect(url)
    try:
        yield engine
    finally:
        engine.dispose()


def asked(engine, statement, **values):
    with engine.connect() as connection:
        return connection.execute(text(statement), values).scalar()


def failure(url, statement="SELECT 1", **values):
    """The error that a statement is answered with."""
    with (
        pytest.raises((InputError, StoreError)) as told,
        translate_errors(url),
        opened(url) as engine,
    ):
        asked(engine, statement, **values)
    assert "\n" not in str(told.value)
    assert SECRET not in str(told.value)
    return told.value


def test_sqlite_uses_wal_full_synchronization_and_foreign_keys(tmp_path):
    with opened(f"sqlite:///{tmp_path / 'ledger.db'}") as engine:
        assert asked(engine, "PRAGMA journal_mode") == "wal"
        assert asked(engine, "PRAGMA synchronous") == 2
        assert asked(engine, "PRAGMA foreign_keys") == 1


@pytest.mark.waits
def test_many_connections_can_open_a_new_sqlite_file_at_once(tmp_path):
    # Without a second try about one in fifteen of these files refuses somebody.
    for file in range(60):
        together = Barrier(8, timeout=DEADLINE)

        def opens(_, url=f"sqlite:///{tmp_path}/{file}.db", together=together):
            engine = connect(url)
            together.wait()
            with engine.connect() as connection:
                mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
            engine.dispose()
            return mode

        with ThreadPoolExecutor(8) as openers:
            assert set(openers.map(opens, range(8))) == {"wal"}


@pytest.mark.waits
def test_postgresql_commits_synchronously_even_if_the_database_default_is_off(postgres_url):
    with opened(postgres_url) as careless, careless.begin() as connection:
        name = careless.url.database
        connection.execute(text(f"ALTER DATABASE {name} SET synchronous_commit=off"))
    with opened(postgres_url) as engine:
        assert asked(engine, "SHOW synchronous_commit") == "on"
        assert asked(engine, "SHOW fsync") == "on"


@pytest.mark.waits
def test_postgresql_connections_have_a_lock_timeout_and_keep_url_options(postgres_url):
    with opened(postgres_url + "?options=-c%20statement_timeout%3D7s") as engine:
        assert asked(engine, "SHOW lock_timeout") == "30s"
        assert asked(engine, "SHOW statement_timeout") == "7s"


def test_inserting_an_existing_key_raises_a_conflict(url):
    with opened(url) as engine:
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE a (b INTEGER PRIMARY KEY)"))
            connection.execute(text("INSERT INTO a VALUES (1)"))
        with (
            pytest.raises(Conflict, match=r"already holds this.*(a\.b|a_pkey)") as told,
            translate_errors(url),
        ):
            asked(engine, "INSERT INTO a VALUES (1)")
    assert "\n" not in str(told.value)


def test_a_wrong_statement_is_retryable_only_on_sqlite_and_shows_no_values(url):
    error = failure(url, "SELECT nosuch WHERE 'x' = :value", value=SECRET)
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
    error = failure(postgres_server.url(**{"database": "postgres", **parts}))
    assert isinstance(error, InputError)
    assert "refused the connection" in str(error)
    assert postgres_server.password not in str(error)


@pytest.mark.waits
def test_an_unreachable_server_raises_a_retryable_error():
    error = failure(f"postgresql://anna:{SECRET}@127.0.0.1:1/ledger")
    assert isinstance(error, StoreError)
    assert error.retryable
    assert "postgresql://anna:***@127.0.0.1:1/ledger failed: " in str(error)
    assert "Connection refused" in str(error)


@pytest.mark.waits
def test_a_lost_connection_raises_a_retryable_error(postgres_url):
    error = failure(postgres_url, "SELECT pg_terminate_backend(pg_backend_pid())")
    assert isinstance(error, StoreError)
    assert error.retryable


@pytest.mark.waits
def test_a_broken_idle_connection_is_not_reused(postgres_url):
    with opened(postgres_url) as engine, opened(postgres_url) as other:
        backend = asked(engine, "SELECT pg_backend_pid()")
        asked(other, "SELECT pg_terminate_backend(:backend, 1000)", backend=backend)
        assert asked(engine, "SELECT pg_backend_pid()") != backend


@pytest.mark.waits
def test_a_value_that_postgresql_cannot_store_raises_an_input_error(postgres_url):
    error = failure(postgres_url, "SELECT CAST(:value AS TEXT)", value="\x00")
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
    error = failure(url)
    assert "is not a database URL; give" in str(error)
    assert error.__cause__ is None


@pytest.mark.waits
def test_the_error_for_an_unknown_connection_option_names_the_option():
    error = failure(f"postgresql://anna:{SECRET}@127.0.0.1:1/ledger?nosuch=1")
    assert isinstance(error, InputError)
    assert 'invalid connection option "nosuch"' in str(error)


@pytest.mark.waits
def test_a_postgresql_database_without_an_encoding_stores_unicode_texts(postgres_server):
    how = "ENCODING SQL_ASCII TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    with postgres_server.database(how) as url:
        ledger = Ledger(url)
        ledger.aliases.set("stable", records.digest("one"), "jo\u00e3o")
        assert ledger.aliases.history()[0].set_by == "jo\u00e3o"
        ledger.close()
