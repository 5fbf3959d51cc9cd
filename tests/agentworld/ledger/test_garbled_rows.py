"""A garbled row is named, and other rows are read."""

import sqlite3
from contextlib import closing

import pytest

import make.ledger
from agentworld.errors import EvidenceError
from agentworld.ledger import Ledger
from make.ledger import OPENING, SIMULATOR

INVALID_TEXT = "CAST(x'61ff' AS TEXT)"


class Store:
    def __init__(self, folder) -> None:
        self.url = make.ledger.laid(f"sqlite:///{folder}/ledger.db")
        self.ledger = Ledger(self.url)
        self.good, self.bad = (self.ledger.open_run(OPENING, SIMULATOR).id for _ in range(2))

    def change(self, statement: str, *values: object) -> None:
        file = self.url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(file)) as database, database:
            assert database.execute(statement, values).rowcount > 0


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("opening", "'['", "Invalid JSON"),
        ("opening", INVALID_TEXT, "is garbled"),
        ("opening", "zeroblob(3000000)", "Invalid JSON"),
        ("log_length", "-1", "log_length: Input should be greater than or equal to 0"),
        ("log_length", "'many'", "log_length"),
        ("num_episodes", "1e300", "num_episodes"),
        ("final_weights", "'x'", "final_weights"),
        ("simulator", "x'ff'", "simulator"),
    ],
)
def test_a_garbled_run_is_named_and_other_runs_are_still_read(store, column, value, words):
    store.change(f"UPDATE runs SET {column} = {value} WHERE id = ?", store.bad)
    runs, (problem,) = store.ledger.readable_runs()
    assert [run.id for run in runs] == [store.good]
    assert problem.startswith(f"the ledger's record of run {store.bad} is garbled: ")
    assert words in problem
    with pytest.raises(EvidenceError, match=store.bad):
        store.ledger.run(store.bad)
    assert store.ledger.run(store.good).opening == OPENING


def test_a_run_name_with_invalid_utf_8_is_read_with_surrogate_escapes(store):
    store.change(f"UPDATE runs SET id = {INVALID_TEXT} WHERE id = ?", store.bad)
    assert set(store.ledger.run_names()) == {store.good, "a\udcff"}
    assert [run.id for run in store.ledger.pages.runs(9)] == ["a\udcff", store.good]


def test_a_garbled_run_is_listed_without_its_opening(store):
    store.change("UPDATE runs SET opening = '[' WHERE id = ?", store.bad)
    runs = {run.id: run for run in store.ledger.pages.runs(9)}  # of one millisecond, in any order
    bad, good = runs[store.bad], runs[store.good]
    assert (bad.id, bad.opening, bad.purpose, bad.agent) == (store.bad, None, "garbled", "garbled")
    assert (good.id, good.opening, good.purpose) == (store.good, OPENING, "training")


def test_a_number_in_place_of_bytes_is_read_as_empty_bytes(store):
    store.change("UPDATE log SET body = 9223372036854775807 WHERE run = ?", store.bad)
    (entry,) = store.ledger.logs.entries(store.bad)
    assert (entry.body, entry.readable_fields) == (b"", {})
    assert store.ledger.logs.first_entry(store.bad) == {}


def test_a_garbled_alias_history_is_reported_and_other_aliases_are_read(store):
    aliases = store.ledger.aliases
    for alias in ("good", "bad", "bad"):
        aliases.set(alias, SIMULATOR, "ada")
    store.change("UPDATE aliases SET gate = ? WHERE sequence = 3", "[" * 200_000)
    changes, garbled = aliases.readable_history()
    assert [change.alias for change in changes] == ["good", "bad"]
    assert [*garbled] == ["bad"]
    assert garbled["bad"].startswith("the history of alias 'bad' is garbled: ")
    assert aliases.resolve("good") == SIMULATOR
    with pytest.raises(EvidenceError, match="the history of alias 'bad' is garbled"):
        aliases.resolve("bad")


def test_a_garbled_attestation_is_read_with_text_columns_and_an_empty_envelope(store):
    store.change(
        "INSERT INTO attestations (name, kind, subject, simulator, run, at, envelope)"
        " VALUES (x'ff', 'edge', 1, ?, x'00', 'now', 9223372036854775807)",
        "\ud7ff",
    )
    (attestation,) = store.ledger.attestations.all()
    assert (attestation.name, attestation.subject, attestation.run, attestation.envelope) == (
        *("b'\\xff'", "1", "b'\\x00'"),
        b"",
    )


def test_the_usage_of_a_garbled_run_is_still_counted(store):
    store.change("UPDATE runs SET opening = '[' WHERE id = ?", store.bad)
    assert {usage.run: usage.agent for usage in store.ledger.counts.run_usage()} == {
        store.good: OPENING.agent,
        store.bad: "garbled",
    }
