"""A garbled row is named, and other rows are read."""

import sqlite3
from contextlib import closing

import pytest

import make.ledger
from agentworld.errors import EvidenceError
from agentworld.ledger import Ledger
from make.ledger import OPENING, SIMULATOR

NO_TEXT = "CAST(x'61ff' AS TEXT)"


class Place:
    def __init__(self, folder) -> None:
        self.url = make.ledger.laid(f"sqlite:///{folder}/ledger.db")
        self.ledger = Ledger(self.url)
        self.good, self.bad = (self.ledger.open_run(OPENING, SIMULATOR).id for _ in range(2))

    def change(self, statement: str, *values: object) -> None:
        file = self.url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(file)) as database, database:
            assert database.execute(statement, values).rowcount > 0


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("opening", "'['", "Invalid JSON"),
        ("opening", NO_TEXT, "is garbled"),
        ("opening", "zeroblob(3000000)", "Invalid JSON"),
        ("log_length", "-1", "log_length: Input should be greater than or equal to 0"),
        ("log_length", "'many'", "log_length"),
        ("num_episodes", "1e300", "num_episodes"),
        ("final_weights", "'x'", "final_weights"),
        ("simulator", "x'ff'", "simulator"),
    ],
)
def test_a_garbled_run_is_named_and_other_runs_are_still_read(place, column, value, words):
    place.change(f"UPDATE runs SET {column} = {value} WHERE id = ?", place.bad)
    found, (problem,) = place.ledger.readable_runs()
    assert [run.id for run in found] == [place.good]
    assert problem.startswith(f"the ledger's record of run {place.bad} is garbled: ")
    assert words in problem
    with pytest.raises(EvidenceError, match=place.bad):
        place.ledger.run(place.bad)
    assert place.ledger.run(place.good).opening == OPENING


def test_a_run_name_with_invalid_utf_8_is_read_with_surrogate_escapes(place):
    place.change(f"UPDATE runs SET id = {NO_TEXT} WHERE id = ?", place.bad)
    assert set(place.ledger.run_names()) == {place.good, "a\udcff"}
    assert [each.id for each in place.ledger.pages.runs(9)] == ["a\udcff", place.good]


def test_a_garbled_run_is_listed_without_its_opening(place):
    place.change("UPDATE runs SET opening = '[' WHERE id = ?", place.bad)
    runs = {run.id: run for run in place.ledger.pages.runs(9)}  # of one millisecond, in any order
    bad, good = runs[place.bad], runs[place.good]
    assert (bad.id, bad.opening, bad.purpose, bad.agent) == (place.bad, None, "garbled", "garbled")
    assert (good.id, good.opening, good.purpose) == (place.good, OPENING, "training")


def test_a_number_in_place_of_bytes_is_read_as_empty_bytes(place):
    place.change("UPDATE log SET body = 9223372036854775807 WHERE run = ?", place.bad)
    (entry,) = place.ledger.logs.entries(place.bad)
    assert (entry.body, entry.readable_fields) == (b"", {})
    assert place.ledger.logs.first_entry(place.bad) == {}


def test_a_garbled_alias_history_is_reported_and_other_aliases_are_read(place):
    aliases = place.ledger.aliases
    for alias in ("good", "bad", "bad"):
        aliases.set(alias, SIMULATOR, "ada")
    place.change("UPDATE aliases SET gate = ? WHERE sequence = 3", "[" * 200_000)
    changes, garbled = aliases.readable_history()
    assert [each.alias for each in changes] == ["good", "bad"]
    assert [*garbled] == ["bad"]
    assert garbled["bad"].startswith("the history of alias 'bad' is garbled: ")
    assert aliases.resolve("good") == SIMULATOR
    with pytest.raises(EvidenceError, match="the history of alias 'bad' is garbled"):
        aliases.resolve("bad")


def test_a_garbled_attestation_is_read_with_text_columns_and_an_empty_envelope(place):
    place.change(
        "INSERT INTO attestations (name, kind, subject, simulator, run, at, envelope)"
        " VALUES (x'ff', 'edge', 1, ?, x'00', 'now', 9223372036854775807)",
        "\ud7ff",
    )
    (found,) = place.ledger.attestations.all()
    assert (found.name, found.subject, found.run, found.envelope) == (
        *("b'\\xff'", "1", "b'\\x00'"),
        b"",
    )


def test_the_usage_of_a_garbled_run_is_still_counted(place):
    place.change("UPDATE runs SET opening = '[' WHERE id = ?", place.bad)
    assert {each.run: each.agent for each in place.ledger.counts.run_usage()} == {
        place.good: OPENING.agent,
        place.bad: "garbled",
    }
