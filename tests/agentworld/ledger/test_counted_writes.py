"""A database may drop a row without an error; the ledger then acknowledges no write."""

from contextlib import closing
from functools import partial

import pytest

from agentworld.errors import StoreError
from agentworld.ledger.database import connect
from agentworld.ledger.tables import METADATA
from agentworld.ledger.writes import EpisodeClosed, EpisodeOpened
from agentworld.records.attestation import Attestation
from agentworld.records.episode import Episode, EpisodeOpening
from make import ledger as make
from make.ledger import OPENING, SIMULATOR, open_episode, taken

_SQLITE = (
    "CREATE TRIGGER drops BEFORE {how} ON {table} WHEN {when} BEGIN SELECT RAISE(IGNORE); END",
)
_POSTGRESQL = (
    "CREATE FUNCTION drops() RETURNS trigger AS 'BEGIN RETURN NULL; END' LANGUAGE plpgsql",
    "CREATE TRIGGER drops BEFORE {how} ON {table} FOR EACH ROW WHEN ({when})"
    " EXECUTE FUNCTION drops()",
)


def drop_rows(url, event, table, condition="1 = 1"):
    """Drops rows of a table from now on, as an owner of the schema could."""
    engine = connect(url)
    with engine.begin() as connection:
        for statement in _SQLITE if url.startswith("sqlite") else _POSTGRESQL:
            connection.exec_driver_sql(statement.format(how=event, table=table, when=condition))
    engine.dispose()


def declare(statement):
    return Attestation(statement.path, statement.kind, *statement.columns, statement.canonical)


def end(ledger, episode, head):
    ledger.write([EpisodeClosed(episode.run, episode.id, 1, head, "closed")])


def set_alias(ledger, *_, **options):
    ledger.aliases.set("stable", SIMULATOR, "ada", **options)


def erase(ledger, episode):
    ledger.erase_texts(episode.id, "ada", declare)


def begin(ledger, episode):
    new_episode = Episode.new("another", SIMULATOR, EpisodeOpening(run=episode.run))
    ledger.write([EpisodeOpened(new_episode)])


def step(ledger, episode):
    ledger.write(taken(ledger.episode(episode.id)._replace(steps=()), "a")[:1])


WRITES = {
    "a run": ("INSERT", "runs", lambda ledger, _: ledger.open_run(OPENING, SIMULATOR)),
    "a run's log": ("INSERT", "log", lambda ledger, _: ledger.open_run(OPENING, SIMULATOR)),
    "an episode": ("INSERT", "episodes", begin),
    "what a run counts": ("UPDATE", "runs", begin),
    "a step": ("INSERT", "steps", step),
    "the end of a run": (
        "UPDATE",
        "runs",
        lambda ledger, episode: ledger.close_run(episode.run, make.closing()),
    ),
    "the end of an episode": (
        "UPDATE",
        "episodes",
        lambda ledger, episode: ledger.close_run(episode.run, make.closing()),
    ),
    "a checkpoint": (
        "INSERT",
        "checkpoints",
        lambda ledger, episode: ledger.logs.add_checkpoint(episode.run, 1, b"envelope"),
    ),
    "an alias": ("INSERT", "aliases", set_alias),
    "its statement": ("INSERT", "attestations", partial(set_alias, declare=declare)),
    "a statement": (
        "INSERT",
        "attestations",
        lambda ledger, _: ledger.attestations.add(
            Attestation("a", "edge", "", "", "", "", b"envelope")
        ),
    ),
    "a key": ("INSERT", "signing_keys", lambda ledger, _: ledger.signing_keys.use("key", "pem")),
}


@pytest.mark.parametrize(("event", "table", "write"), WRITES.values(), ids=WRITES)
def test_a_write_that_the_database_drops_raises_and_is_rolled_back(
    ledger, url, event, table, write
):
    episode = open_episode(ledger)
    before = read_rows(url)
    drop_rows(url, event, table)
    with pytest.raises(StoreError, match=f"table {table} stored 0 of 1 rows") as error:
        write(ledger, episode)
    assert not error.value.retryable
    assert read_rows(url) == before


@pytest.mark.parametrize("table", ["episodes", "steps"])
def test_an_erasure_that_the_database_drops_raises_and_is_rolled_back(ledger, url, table):
    episode = open_episode(ledger)
    ledger.write(taken(episode, "a", "b"))
    ledger.close_run(episode.run, make.closing())
    before = read_rows(url)
    drop_rows(url, "UPDATE", table)
    with pytest.raises(StoreError, match=f"table {table} stored 0 of [12] rows"):
        erase(ledger, episode)
    assert read_rows(url) == before


def test_a_single_dropped_row_of_many_is_detected(ledger, url):
    episode = open_episode(ledger)
    drop_rows(url, "INSERT", "steps", "NEW.number = 2")
    with pytest.raises(StoreError, match="table steps stored 1 of 2 rows"):
        ledger.write(taken(episode, "a", "b"))
    assert ledger.episode(episode.id).steps == ()


def read_rows(url):
    """The rows of all tables of a ledger."""
    engine = connect(url)
    with closing(engine.connect()) as connection:
        rows = {
            str(table): connection.execute(table.select()).all() for table in METADATA.sorted_tables
        }
    engine.dispose()
    return rows
